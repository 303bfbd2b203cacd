#include "template.h"

#include "proc.h"
#include "sys.h"
#include "util.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAYER_PATH "/mnt/data" /* where it is mounted in the template */
#define DEV_SOURCE "dev"
#define RUN_SOURCE "run"

static const char *const mount_points[] = {"proc", "dev", "tmp", "mnt/data", "run"};

static const struct {
	const char *name;
	unsigned major, minor;
} devices[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}};

static const struct {
	const char *name, *target;
} links[] = {
	{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"},
};

int tmpfs_make(const char *const *options, unsigned attributes)
{
	int fs = sys_fsopen("tmpfs"), mount = -1, saved;
	char key[32];

	if (fs < 0)
		return -1;
	for (; *options; options++) {
		const char *value = strchr(*options, '=') + 1;

		snprintf(key, sizeof(key), "%.*s", (int)(value - *options - 1), *options);
		if (sys_fsconfig(fs, FSCONFIG_SET_STRING, key, value) < 0)
			goto done;
	}
	if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) == 0)
		mount = sys_fsmount(fs, attributes);
done:
	saved = errno;
	close(fs);
	errno = saved;
	return mount;
}

int overlay_make(const char *layers)
{
	/* Extended attributes of the image mean nothing here, whatever the kernel's defaults are. */
	const char *const words[][2] = {
		{"source", "overlay"}, {"lowerdir", layers}, {"redirect_dir", "nofollow"}, {"metacopy", "off"}};
	int fs = sys_fsopen("overlay"), mount = -1, saved;

	if (fs < 0)
		return -1;
	for (size_t i = 0; i < COUNT(words); i++)
		if (sys_fsconfig(fs, FSCONFIG_SET_STRING, words[i][0], words[i][1]) < 0)
			goto done;
	if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) == 0)
		mount = sys_fsmount(fs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
done:
	saved = errno;
	close(fs);
	errno = saved;
	return mount;
}

/* `at`: a directory to mount the new root on; the old root goes. */
static int change_root(int tree, const char *at)
{
	if (sys_move_mount(tree, at) < 0 || chdir(at) < 0 || sys_pivot_root(".", ".") < 0 ||
	    sys_umount(".", MNT_DETACH) < 0)
		return -1;
	return chdir("/");
}

static void enter_image(const char *root)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME,
		.attr_clr = MOUNT_ATTR__ATIME,
	};
	int tree = sys_open_tree(AT_FDCWD, root);
	struct stat st;

	if (tree < 0)
		fatal("cannot open the image %s", root);
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attributes) < 0)
		fatal("cannot make the image read-only");
	for (size_t i = 0; i < COUNT(mount_points); i++)
		if (fstatat(tree, mount_points[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			fatal("the image has no directory /%s", mount_points[i]);
	if (change_root(tree, root) < 0)
		fatal("cannot make the image the root");
	close(tree);
}

static int make_dev(int layer)
{
	char path[64];

	if (mkdirat(layer, DEV_SOURCE, 0755) < 0 || mkdirat(layer, DEV_SOURCE "/shm", 0755) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(devices); i++) {
		snprintf(path, sizeof(path), DEV_SOURCE "/%s", devices[i].name);
		if (mknodat(layer, path, S_IFCHR | 0666, makedev(devices[i].major, devices[i].minor)) < 0)
			return -1;
	}
	for (size_t i = 0; i < COUNT(links); i++) {
		snprintf(path, sizeof(path), DEV_SOURCE "/%s", links[i].name);
		if (symlinkat(links[i].target, layer, path) < 0)
			return -1;
	}
	return 0;
}

/* The mount point of the tool directory; the image needs to know nothing of it. */
static int make_tool_mount(int layer, const struct options *options)
{
	char path[128];

	if (!options->tool_directory)
		return 0;
	snprintf(path, sizeof(path), RUN_SOURCE "/%s", options->tool_mount + strlen(TOOL_MOUNT_PARENT));
	return mkdirat(layer, RUN_SOURCE, 0755) < 0 ? -1 : mkdirat(layer, path, 0755);
}

/* What lies over the image in the root of each jail: all of it in the directory that the workspace hides. */
static void make_layer(const struct options *options)
{
	const char *const size[] = {"mode=755", "size=1048576", "nr_inodes=256", NULL};
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
	int layer = tmpfs_make(size, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC), sources = -1;

	if (layer >= 0 && mkdirat(layer, "mnt", 0755) == 0 && mkdirat(layer, "mnt/data", 0755) == 0)
		sources = openat(layer, "mnt/data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sources < 0 || make_dev(sources) < 0 || make_tool_mount(sources, options) < 0)
		fatal("cannot make /dev");
	if (proc_make_covers(sources) < 0)
		fatal("cannot make the covers of /proc");
	if (sys_mount_setattr(layer, "", AT_EMPTY_PATH, &attributes) < 0 || sys_move_mount(layer, LAYER_PATH) < 0)
		fatal("cannot mount what lies over the image");
	close(sources);
	close(layer);
}

static int bind_source(const char *source, const char *target, uint64_t cleared)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, .attr_clr = cleared};
	int tree = sys_open_tree(AT_FDCWD, source), result = -1, saved;

	if (tree < 0)
		return -1;
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attributes) == 0)
		result = sys_move_mount(tree, target);
	saved = errno;
	close(tree);
	errno = saved;
	return result;
}

int template_enter(const struct options *options)
{
	int root = overlay_make(LAYER_PATH ":/"), result, saved;

	if (root < 0)
		return -1;
	result = change_root(root, "/tmp");
	saved = errno;
	close(root);
	errno = saved;
	if (result < 0 || bind_source(COVERS_PATH "/" DEV_SOURCE, "/dev", MOUNT_ATTR_NODEV) < 0)
		return -1;
	return options->tool_directory ? bind_source(COVERS_PATH "/" RUN_SOURCE, "/run", 0) : 0;
}

static _Noreturn void build(const struct options *options, int done, pid_t master)
{
	umask(0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != master)
		fatal("cannot tie the maker of the template to jaild");
	if (unshare(CLONE_NEWNS) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		fatal("cannot make a mount namespace");
	enter_image(options->root);
	make_layer(options);
	if (write_all(done, "1", 1) < 0)
		fatal("cannot report the template");
	pause();
	_exit(0);
}

int template_make(const struct options *options)
{
	int done[2], namespace;
	char path[64], byte;
	pid_t pid, master = getpid();

	if (pipe2(done, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		fatal("cannot fork");
	if (pid == 0)
		build(options, done[1], master);
	close(done[1]);
	if (read(done[0], &byte, 1) != 1)
		fatal("cannot make the template");
	close(done[0]);
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	namespace = open(path, O_RDONLY | O_CLOEXEC);
	if (namespace < 0)
		fatal("cannot open the template");
	if (kill(pid, SIGKILL) < 0 || waitpid(pid, NULL, 0) != pid)
		fatal("cannot end the maker of the template");
	return namespace;
}
