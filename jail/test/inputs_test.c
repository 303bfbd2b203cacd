/* The list of inputs: order, lookup, the question whether a directory holds one. Staging beside somebody who swaps files. */
#include "keeper/stage.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SWAPS 3000
#define EXCHANGE 2

static struct inputs inputs;

static void add(const char *path, bool directory)
{
	CHECK(inputs_add(&inputs, (uint32_t)inputs.count, directory, path, strlen(path), 0) != NULL);
}

static void swap(int workspace, pid_t tester)
{
	while (getppid() == tester)
		(void)syscall(SYS_renameat2, workspace, "directory", workspace, "file", EXCHANGE);
	_exit(0);
}

/* In the middle of its making, a directory changes places with a file that only its owner may change. */
static void gives_no_file_away(void)
{
	static const struct directory_header header = {.path = "directory", .path_size = 9};
	char path[] = "/tmp/svc-stage-XXXXXX";
	pid_t swapper, tester = getpid();
	struct stage stage = {.uid = getuid() + 4711, .gid = getgid()};
	struct stat st;
	int file;

	CHECK(mkdtemp(path) && (stage.workspace = open(path, O_RDONLY | O_DIRECTORY)) >= 0);
	CHECK((file = openat(stage.workspace, "file", O_WRONLY | O_CREAT | O_EXCL, 0444)) >= 0);
	swapper = fork();
	if (swapper == 0)
		swap(stage.workspace, tester);
	for (int i = 0; i < SWAPS; i++) {
		(void)stage_directory(&stage, &header);
		CHECK(fstat(file, &st) == 0 && st.st_uid == getuid());
		(void)unlinkat(stage.workspace, "directory", AT_REMOVEDIR);
		(void)unlinkat(stage.workspace, "file", AT_REMOVEDIR);
		(void)syscall(SYS_renameat2, stage.workspace, "directory", stage.workspace, "file", 1 /* no replacement */);
	}
	kill(swapper, SIGKILL);
	CHECK(waitpid(swapper, NULL, 0) == swapper);
	/* Either may have either name now. */
	for (int flags = 0; flags <= AT_REMOVEDIR; flags += AT_REMOVEDIR) {
		(void)unlinkat(stage.workspace, "file", flags);
		(void)unlinkat(stage.workspace, "directory", flags);
	}
	close(file);
	close(stage.workspace);
	CHECK(rmdir(path) == 0);
}

void test_inputs(void)
{
	gives_no_file_away();
	add("b/c", false);
	add(".hidden/x/y", false);
	add("a", false);
	add("dir", true);
	CHECK(inputs_sort(&inputs));
	CHECK(inputs_find(&inputs, "a") && inputs_find(&inputs, "b/c") && inputs_find(&inputs, "dir"));
	CHECK(!inputs_find(&inputs, "b") && !inputs_find(&inputs, "aa") && !inputs_find(&inputs, ""));
	CHECK(inputs_below(&inputs, ".hidden") && inputs_below(&inputs, ".hidden/x") && inputs_below(&inputs, "dir"));
	CHECK(!inputs_below(&inputs, ".hid") && !inputs_below(&inputs, ".hidden/x/y/z") && !inputs_below(&inputs, "b/d"));
	add("a", false);
	CHECK(!inputs_sort(&inputs));
	while (inputs.count < INPUTS_MAX)
		add("z", false);
	CHECK(inputs_add(&inputs, 1, false, "z", 1, 0) == NULL);
	for (size_t i = 0; i < inputs.count; i++)
		free(inputs.item[i].path);
}
