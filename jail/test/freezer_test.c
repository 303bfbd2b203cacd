/* Which files stop a group on which version, and what they say. */
#include "cgroup/freezer.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void put(const char *directory, const char *file, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static bool holds(const char *directory, const char *file, const char *text)
{
	char path[256], found[64] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, found, sizeof(found) - 1) >= 0);
	close(fd);
	return strcmp(found, text) == 0;
}

static void drop(const char *directory, const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	CHECK(unlink(path) == 0);
}

/* Ordinary files in the place of the kernel's: what is written where. */
static void takes_the_files_of_its_version(void)
{
	char directory[] = "/tmp/freezer-XXXXXX";
	struct freezer freezer;

	CHECK(mkdtemp(directory));
	CHECK(freezer_open(&freezer, 1, AT_FDCWD, directory) < 0 && errno == ENOENT);
	freezer_close(&freezer);
	put(directory, "cgroup.freeze", "");
	CHECK(freezer_open(&freezer, 2, AT_FDCWD, directory) < 0);
	freezer_close(&freezer);
	put(directory, "cgroup.events", "populated 1\nfrozen 1\n");
	CHECK(freezer_open(&freezer, 2, AT_FDCWD, directory) == 0 && freezer_thaw(&freezer) == 0);
	CHECK(holds(directory, "cgroup.freeze", "")); /* nothing was frozen */
	CHECK(freezer_freeze(&freezer, FREEZE_US) == 0 && freezer.frozen && holds(directory, "cgroup.freeze", "1"));
	CHECK(freezer_thaw(&freezer) == 0 && !freezer.frozen && holds(directory, "cgroup.freeze", "0"));
	/* A group that never stands still is let go again. */
	put(directory, "cgroup.events", "populated 1\nfrozen 0\n");
	CHECK(freezer_freeze(&freezer, FREEZE_US) < 0 && errno == ETIMEDOUT && !freezer.frozen);
	CHECK(holds(directory, "cgroup.freeze", "0"));
	freezer_close(&freezer);
	put(directory, "cgroup.freeze", "1");
	freezer_thaw_group(2, AT_FDCWD, directory);
	CHECK(holds(directory, "cgroup.freeze", "0"));
	drop(directory, "cgroup.freeze");
	drop(directory, "cgroup.events");
	put(directory, "freezer.state", "");
	CHECK(freezer_open(&freezer, 1, AT_FDCWD, directory) == 0);
	freezer_close(&freezer);
	freezer_thaw_group(1, AT_FDCWD, directory);
	CHECK(holds(directory, "freezer.state", "THAWED"));
	drop(directory, "freezer.state");
	freezer_thaw_group(1, AT_FDCWD, directory);
	CHECK(rmdir(directory) == 0);
}

void test_freezer(void)
{
	struct freezer none = {.version = 0};

	CHECK(strcmp(freezer_control_file(1), "freezer.state") == 0 && strcmp(freezer_state_file(1), "freezer.state") == 0);
	CHECK(strcmp(freezer_control_file(2), "cgroup.freeze") == 0 && strcmp(freezer_state_file(2), "cgroup.events") == 0);
	CHECK(freezer_text_is_frozen(1, "FROZEN\n") && !freezer_text_is_frozen(1, "FREEZING\n"));
	CHECK(!freezer_text_is_frozen(1, "THAWED\n") && !freezer_text_is_frozen(1, ""));
	CHECK(freezer_text_is_frozen(2, "populated 1\nfrozen 1\n") && !freezer_text_is_frozen(2, "populated 1\nfrozen 0\n"));
	CHECK(!freezer_text_is_frozen(2, "populated 1\n"));
	CHECK(freezer_freeze(&none, FREEZE_US) < 0 && errno == ENOTSUP && freezer_thaw(&none) == 0);
	takes_the_files_of_its_version();
}
