/*
 * Which statistics of a network namespace say that it is empty: nothing but a plain zero does. Which entries of its /proc/net
 * programs may read, also when one comes later; a directory stands for it.
 */
#include "init/network.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int directory;

static void add(const char *name)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL, 0444);

	CHECK(fd >= 0 && fchmod(fd, 0444) == 0 && close(fd) == 0);
}

static unsigned mode_of(const char *name)
{
	struct stat st;

	CHECK(fstatat(directory, name, &st, 0) == 0);
	return st.st_mode & 07777;
}

static void hides_what_comes_later(void)
{
	char path[] = "/tmp/svc-network-XXXXXX";
	uint64_t first, same, later;

	CHECK(mkdtemp(path) && (directory = open(path, O_RDONLY | O_DIRECTORY)) >= 0);
	add("dev");
	add("softnet_stat");
	CHECK(mkdirat(directory, "stat", 0755) == 0);
	CHECK(network_names(directory, &first) == 0 && lseek(directory, 0, SEEK_SET) == 0);
	CHECK(network_names(directory, &same) == 0 && same == first);
	CHECK(network_hide(open(path, O_RDONLY | O_DIRECTORY)) == 0);
	CHECK(mode_of("dev") == 0444 && mode_of("softnet_stat") == 0 && mode_of("stat") == 0);
	add("newcomer");
	CHECK(lseek(directory, 0, SEEK_SET) == 0 && network_names(directory, &later) == 0 && later != first);
	CHECK(network_hide(open(path, O_RDONLY | O_DIRECTORY)) == 0);
	CHECK(mode_of("newcomer") == 0 && mode_of("dev") == 0444);
	/* As many entries, and one of them another. */
	CHECK(unlinkat(directory, "newcomer", 0) == 0);
	add("other");
	CHECK(lseek(directory, 0, SEEK_SET) == 0 && network_names(directory, &same) == 0 && same != later);
	CHECK(network_hide(-1) == -1);
	CHECK(unlinkat(directory, "other", 0) == 0 && unlinkat(directory, "dev", 0) == 0 &&
	      unlinkat(directory, "softnet_stat", 0) == 0 && unlinkat(directory, "stat", AT_REMOVEDIR) == 0);
	CHECK(close(directory) == 0 && rmdir(path) == 0);
}

void test_network(void)
{
	hides_what_comes_later();
	CHECK(network_text_is_empty("sockets: used 0\nTCP: inuse 0 orphan 0 tw 0 alloc 51 mem 0\n"));
	CHECK(!network_text_is_empty("sockets: used 1\n"));
	CHECK(!network_text_is_empty("sockets: used 01\n"));
	CHECK(!network_text_is_empty("sockets: used 0"));
	CHECK(!network_text_is_empty("sockets: used -1\n"));
	CHECK(!network_text_is_empty(" sockets: used 0\n"));
	CHECK(!network_text_is_empty("TCP: inuse 0\nsockets: used 0\n"));
	CHECK(!network_text_is_empty(""));
}
