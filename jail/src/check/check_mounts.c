/* Checks the image and every kind of mount, each for the property that jails rely on. */
#include "check/probe.h"
#include "init/proc.h"
#include "init/template.h"
#include "lib/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SMALL_BYTES 65536
#define SMALL_FILES 16

int probe_image(const struct options *options)
{
	static const char *const needed[] = {"proc", "dev", "tmp", "mnt/data", "run"};
	int root = open(options->root, O_PATH | O_DIRECTORY);
	struct statvfs fs;
	struct stat st;

	for (size_t i = 0; i < COUNT(needed); i++)
		if (root < 0 || fstatat(root, needed[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			return ENOENT;
	if (statvfs(options->root, &fs) < 0)
		return errno;
	return fs.f_flag & ST_NOEXEC ? EACCES : 0;
}

static int fill(int directory)
{
	static char block[2 * SMALL_BYTES];
	char name[16];
	int fd = openat(directory, "f", O_WRONLY | O_CREAT, 0600), files = 1;

	if (fd < 0)
		return errno;
	if (write(fd, block, sizeof(block)) != SMALL_BYTES)
		return EPROTO;
	do
		snprintf(name, sizeof(name), "%d", files++);
	while (files <= SMALL_FILES && mknodat(directory, name, S_IFREG | 0600, 0) == 0);
	/* The root directory is one of the inodes. */
	return files == SMALL_FILES && errno == ENOSPC ? 0 : EPROTO;
}

int probe_tmpfs(const struct options *options)
{
	const char *const size[] = {"size=65536", "nr_inodes=16", NULL};
	int tmpfs = -1;

	if (enter_userns(options) == 0 && private_mounts() == 0)
		tmpfs = tmpfs_make(size, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return tmpfs < 0 ? errno : fill(tmpfs);
}

int probe_devices(const struct options *options)
{
	const char *const size[] = {"size=65536", NULL};
	int tmpfs = tmpfs_make(size, MOUNT_ATTR_NOSUID), null;

	(void)options;
	if (tmpfs < 0 || mknodat(tmpfs, "null", S_IFCHR | 0666, makedev(1, 3)) < 0)
		return errno;
	null = openat(tmpfs, "null", O_WRONLY);
	return null < 0 ? errno : errno_of(write(null, "x", 1));
}

int probe_bind(const struct options *options)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	int tree;

	if (private_mounts() < 0)
		return errno;
	tree = sys_open_tree(AT_FDCWD, options->root);
	if (tree < 0 || sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attributes) < 0)
		return errno;
	return must_fail(openat(tree, "svc-check", O_WRONLY | O_CREAT, 0600), EROFS);
}

int probe_pivot_root(const struct options *options)
{
	int tree;

	/* Only root may be able to search the directories above the image. */
	if (chdir(options->root) < 0 || enter_userns(options) < 0 || private_mounts() < 0)
		return errno;
	tree = sys_open_tree(AT_FDCWD, ".");
	if (tree < 0 || sys_move_mount(tree, ".") < 0 || fchdir(tree) < 0)
		return errno;
	return errno_of(sys_pivot_root(".", ".") < 0 ? -1 : sys_umount(".", MNT_DETACH));
}

int probe_overlay(const struct options *options)
{
	const char *const size[] = {"mode=755", "size=65536", NULL};
	int layer, root, own, shared;

	if (chdir(options->root) < 0 || enter_userns(options) < 0 || private_mounts() < 0)
		return errno;
	layer = tmpfs_make(size, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (layer < 0 || sys_move_mount(layer, "mnt/data") < 0 || (root = overlay_make("mnt/data:.")) < 0)
		return errno;
	own = openat(root, "tmp", O_RDONLY | O_DIRECTORY);
	shared = open("tmp", O_RDONLY | O_DIRECTORY);
	if (own < 0 || shared < 0 || flock(own, LOCK_EX | LOCK_NB) < 0)
		return errno;
	/* Succeeds only when the overlay has inodes of its own. */
	return errno_of(flock(shared, LOCK_EX | LOCK_NB));
}

static int mount_own_proc(void)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
	char self[16] = "", version[256];

	if (private_mounts() < 0 ||
	    sys_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
	    sys_mount_setattr(AT_FDCWD, "/proc", AT_RECURSIVE, &attributes) < 0)
		return errno;
	if (readlink("/proc/self", self, sizeof(self) - 1) < 0 || strcmp(self, "1") != 0)
		return EPROTO;
	if (must_fail(open("/proc/self/comm", O_WRONLY), EROFS) != 0)
		return EPROTO;
	/* The entry must vanish even after it has been looked up. */
	if (read_file_at(AT_FDCWD, "/proc/version", version, sizeof(version)) < 0 || proc_hide() < 0)
		return errno;
	return must_fail(open("/proc/version", O_RDONLY), ENOENT);
}

int probe_proc(const struct options *options)
{
	pid_t pid;

	/* As in the template: parts of the host's /proc may be covered, so the jail is made beside an uncovered one. */
	if (private_mounts() < 0 || sys_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ||
	    enter_userns(options) < 0 || unshare(CLONE_NEWPID) < 0)
		return errno;
	pid = fork();
	if (pid == 0)
		_exit(mount_own_proc());
	return exit_of(pid);
}
