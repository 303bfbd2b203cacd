/* The controllers of cgroup v2: what is there is left alone, what is not is enabled and noted. */
#include "cgroup/cgroup_tree.h"
#include "lib/util.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char place[] = "/tmp/svc-cgroup-XXXXXX";
static char file[64];

/* What jaild notes for a group whose children have these controllers, and what it wrote last. */
static void expect(const char *present, const char *noted, const char *written)
{
	char added[64] = "", text[128];
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, present, strlen(present)) == (ssize_t)strlen(present) && close(fd) == 0);
	CHECK(cgroup_enable(place, added, sizeof(added)) == 0);
	CHECK(strcmp(added, noted) == 0);
	CHECK(read_file_at(AT_FDCWD, file, text, sizeof(text)) >= 0);
	CHECK(strncmp(text, written, strlen(written)) == 0);
}

void test_cgroup(void)
{
	CHECK(mkdtemp(place) != NULL);
	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", place);
	expect("cpuset cpu io memory pids\n", "", "cpuset");
	expect("cpu io memory hugetlb pids", "", "cpu io");
	expect("cpuset memory pids\n", "-cpu ", "+cpu");
	expect("", "-memory -pids -cpu ", "+cpu");
	CHECK(unlink(file) == 0);
	CHECK(cgroup_enable(place, NULL, 0) < 0);
	CHECK(rmdir(place) == 0);
}
