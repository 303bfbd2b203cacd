/* Staging: modes, owners, links that nothing goes through, and somebody who swaps files meanwhile. */
#include "keeper/stage.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SWAPS 3000
#define EXCHANGE 2

static char place[32];
static struct stage stage;

static void begin(void)
{
	strcpy(place, "/tmp/svc-stage-XXXXXX");
	CHECK(mkdtemp(place) != NULL);
	/* Only root can give files away, and look into what is closed, as a keeper can. */
	stage = (struct stage){.workspace = open(place, O_RDONLY | O_DIRECTORY),
			       .uid = getuid() == 0 ? 4711 : getuid(), .gid = getuid() == 0 ? 4711 : getgid()};
	CHECK(stage.workspace >= 0);
}

static void end(void)
{
	close(stage.workspace);
	CHECK(rmdir(place) == 0);
}

static int make_directory(const char *path, mode_t mode)
{
	return stage_directory(&stage, &(struct directory_header){.mode = mode, .path = path, .path_size = strlen(path)});
}

static int make_link(const char *path, const char *target)
{
	return stage_link(&stage, &(struct link_header){
					  .path = path, .path_size = strlen(path), .target = target, .target_size = strlen(target)});
}

/* 0 or -1 */
static int make_file(const char *path, mode_t mode, bool read_only)
{
	const struct file_header file = {.read_only = read_only, .mode = mode, .path = path, .path_size = strlen(path)};
	int fd = stage_file(&stage, &file);

	return fd < 0 ? -1 : close(fd);
}

static void expect(const char *path, mode_t mode, bool owned)
{
	struct stat st;

	CHECK(fstatat(stage.workspace, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mode == mode);
	CHECK(st.st_uid == (owned ? stage.uid : getuid()) && st.st_gid == (owned ? stage.gid : getgid()));
}

static void sets_modes(void)
{
	mode_t mask = umask(077), closed = getuid() == 0 ? 0 : 0700;

	begin();
	CHECK(make_file("d/f", 0751, false) == 0 && make_file("d/none", 0, false) == 0 && make_file("d/r", 0555, true) == 0);
	expect("d/f", S_IFREG | 0751, true);
	expect("d/none", S_IFREG, true);
	expect("d/r", S_IFREG | 0555, false);
	expect("d", S_IFDIR | 0700, true); /* what the mask leaves of 0755 */
	CHECK(fchmodat(stage.workspace, "d", 03770, 0) == 0 && fchownat(stage.workspace, "d", getuid(), getgid(), 0) == 0);
	/* A directory that exists gets its mode and its owner, and loses other bits. */
	CHECK(make_directory("d", closed) == 0);
	expect("d", S_IFDIR | closed, true);
	CHECK(make_file("d/later", 0600, false) == 0 && make_directory("d/e", 0777) == 0);
	expect("d/later", S_IFREG | 0600, true);
	expect("d/e", S_IFDIR | 0777, true);
	umask(mask);
	CHECK(unlinkat(stage.workspace, "d/f", 0) == 0 && unlinkat(stage.workspace, "d/none", 0) == 0);
	CHECK(unlinkat(stage.workspace, "d/r", 0) == 0 && unlinkat(stage.workspace, "d/later", 0) == 0);
	CHECK(unlinkat(stage.workspace, "d/e", AT_REMOVEDIR) == 0 && unlinkat(stage.workspace, "d", AT_REMOVEDIR) == 0);
	end();
}

static bool is_refused(int result)
{
	return result < 0 && (errno == ENOTDIR || errno == ELOOP || errno == EEXIST);
}

static void goes_through_no_link(void)
{
	char target[16];

	begin();
	CHECK(make_directory("real", 0755) == 0);
	CHECK(make_link("to/dir", "../real") == 0 && make_link("out", "/tmp") == 0 && make_link("self", "self") == 0);
	expect("to/dir", S_IFLNK | 0777, true);
	expect("to", S_IFDIR | 0755, true);
	CHECK(readlinkat(stage.workspace, "to/dir", target, sizeof(target)) == 7 && memcmp(target, "../real", 7) == 0);
	for (size_t i = 0; i < 3; i++) {
		static const char *const links[] = {"to/dir", "out", "self"};
		char below[32];

		snprintf(below, sizeof(below), "%s/svc-stage-x", links[i]);
		CHECK(is_refused(make_file(below, 0644, false)) && is_refused(make_directory(below, 0755)));
		CHECK(is_refused(make_link(below, "x")));
		CHECK(is_refused(make_file(links[i], 0644, false)) && is_refused(make_directory(links[i], 0700)));
		CHECK(is_refused(make_link(links[i], "x")));
	}
	expect("real", S_IFDIR | 0755, true);
	CHECK(is_refused(make_link("real", "x")) && make_file("f", 0644, true) == 0 && is_refused(make_link("f", "x")));
	expect("f", S_IFREG | 0644, false);
	CHECK(unlinkat(stage.workspace, "to/dir", 0) == 0 && unlinkat(stage.workspace, "to", AT_REMOVEDIR) == 0);
	CHECK(unlinkat(stage.workspace, "out", 0) == 0 && unlinkat(stage.workspace, "self", 0) == 0);
	CHECK(unlinkat(stage.workspace, "f", 0) == 0 && unlinkat(stage.workspace, "real", AT_REMOVEDIR) == 0);
	end();
}

static void swap(int workspace, pid_t tester)
{
	while (getppid() == tester)
		(void)syscall(SYS_renameat2, workspace, "made", workspace, "file", EXCHANGE);
	_exit(0);
}

static void remove_both(void)
{
	/* Either may have either name. */
	for (int flags = 0; flags <= AT_REMOVEDIR; flags += AT_REMOVEDIR) {
		(void)unlinkat(stage.workspace, "file", flags);
		(void)unlinkat(stage.workspace, "made", flags);
	}
}

/* In the middle of its making, a directory or link changes places with a file that only its owner may change. */
static void gives_no_file_away(bool link)
{
	pid_t swapper, tester = getpid();
	int made = 0;

	begin();
	swapper = fork();
	if (swapper == 0)
		swap(stage.workspace, tester);
	for (int i = 0; i < SWAPS; i++) {
		int file = openat(stage.workspace, "file", O_WRONLY | O_CREAT | O_EXCL, 0444);
		struct stat st;

		CHECK(file >= 0);
		made += (link ? make_link("made", "x") : make_directory("made", 0755)) == 0;
		CHECK(fstat(file, &st) == 0 && st.st_uid == getuid() && (st.st_mode & 07777) == 0444);
		close(file);
		while (faccessat(stage.workspace, "made", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
		       faccessat(stage.workspace, "file", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			remove_both();
	}
	CHECK(made > 0);
	kill(swapper, SIGKILL);
	CHECK(waitpid(swapper, NULL, 0) == swapper);
	end();
}

/* A directory changes places with a link to one outside all the time. */
static void never_leaves_the_workspace(void)
{
	char outside[] = "/tmp/svc-outside-XXXXXX";
	pid_t swapper, tester = getpid();
	struct stat before, after;

	begin();
	CHECK(mkdtemp(outside) && stat(outside, &before) == 0);
	CHECK(make_directory("made", 0755) == 0 && symlinkat(outside, stage.workspace, "file") == 0);
	swapper = fork();
	if (swapper == 0)
		swap(stage.workspace, tester);
	for (int i = 0; i < SWAPS; i++) {
		(void)make_directory("made", 0700);
		(void)make_directory("made/d", 0755);
		(void)make_file("made/f", 0644, false);
		(void)make_link("made/l", "x");
	}
	kill(swapper, SIGKILL);
	CHECK(waitpid(swapper, NULL, 0) == swapper);
	CHECK(stat(outside, &after) == 0 && after.st_mode == before.st_mode && after.st_uid == before.st_uid);
	CHECK(rmdir(outside) == 0); /* so nothing came to be in it */
	for (size_t i = 0; i < 2; i++) {
		static const char *const names[] = {"made", "file"};
		int fd = openat(stage.workspace, names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

		if (fd < 0)
			continue;
		(void)unlinkat(fd, "d", AT_REMOVEDIR);
		(void)unlinkat(fd, "f", 0);
		(void)unlinkat(fd, "l", 0);
		close(fd);
	}
	remove_both();
	end();
}

void test_stage(void)
{
	sets_modes();
	goes_through_no_link();
	gives_no_file_away(false);
	gives_no_file_away(true);
	never_leaves_the_workspace();
}
