#include "init/template.h"

#include "files/tooldir.h"
#include "init/proc.h"
#include "init/userns.h"
#include "lib/sys.h"
#include "lib/util.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* Mount points in the root of the template, which is a small tmpfs. */
#define IMAGE_PATH "/image"
#define LAYER_PATH "/layer"
#define PROC_PATH "/proc"
#define JAIL_PATH "/jail"
#define DEVICES_PATH "/devices"
#define TOOLS_PATH "/tools"
#define RUN_SOURCE "run"

static const char *const directories[] = {IMAGE_PATH, LAYER_PATH, PROC_PATH, JAIL_PATH, DEVICES_PATH, TOOLS_PATH};
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
	/* Extended attributes of the image have no effect, whatever the kernel's defaults are. */
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

int proc_make(void)
{
	int fs = sys_fsopen("proc"), mount = -1, saved;

	if (fs < 0)
		return -1;
	if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) == 0)
		mount = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	saved = errno;
	close(fs);
	errno = saved;
	return mount;
}

/* Mounts the new root on the directory `at`, pivots to it, and detaches the old root. */
static int change_root(int tree, const char *at)
{
	if (sys_move_mount(tree, at) < 0 || chdir(at) < 0 || sys_pivot_root(".", ".") < 0 ||
	    sys_umount(".", MNT_DETACH) < 0)
		return -1;
	return chdir("/");
}

/* Ends the process that builds the template without exit handlers: they belong to the master. */
static _Noreturn void fail(const char *what)
{
	log_line(LOG_FATAL, -1, errno, "%s", what);
	_exit(1);
}

static int open_image(const char *root)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME,
		.attr_clr = MOUNT_ATTR__ATIME,
	};
	int tree = sys_open_tree(AT_FDCWD, root);
	struct stat st;

	if (tree < 0)
		fail("cannot open the image");
	if (sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attributes) < 0)
		fail("cannot make the image read-only");
	for (size_t i = 0; i < COUNT(mount_points); i++)
		if (fstatat(tree, mount_points[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			fail("the image lacks a directory that jails need");
	return tree;
}

/* A jail cannot make device nodes, and nodes on its overlay do not work. */
static int make_devices(int root, unsigned number)
{
	char path[64];
	int directory;

	snprintf(path, sizeof(path), "." DEVICES_PATH "/%u", number);
	if (mkdirat(root, path, 0755) < 0 || (directory = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    mkdirat(directory, "shm", 0755) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(devices); i++)
		if (mknodat(directory, devices[i].name, S_IFCHR | 0666, makedev(devices[i].major, devices[i].minor)) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlinkat(links[i].target, directory, links[i].name) < 0)
			return -1;
	return close(directory);
}

static int make_root(const struct options *options)
{
	const char *const size[] = {"mode=755", "size=1048576", "nr_inodes=16384", NULL};
	int root = tmpfs_make(size, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

	for (size_t i = 0; i < COUNT(directories); i++)
		if (root < 0 || mkdirat(root, directories[i] + 1, 0755) < 0)
			return -1;
	for (unsigned slot = 0; slot < options->slots; slot++)
		if (make_devices(root, slot) < 0)
			return -1;
	return make_devices(root, NO_SLOT) < 0 ? -1 : root;
}

/* Makes the mount point of the tool directory, so that the image needs none. */
static int make_tool_mount(int layer, const struct options *options)
{
	char path[128];

	if (!options->tool_directory)
		return 0;
	snprintf(path, sizeof(path), RUN_SOURCE "/%s", options->tool_mount + strlen(TOOL_MOUNT_PARENT));
	return mkdirat(layer, RUN_SOURCE, 0755) < 0 ? -1 : mkdirat(layer, path, 0755);
}

/* Makes the upper layer of each jail's root. Its content lies in the directory on which the workspace is mounted later. */
static int make_layer(const struct options *options)
{
	const char *const size[] = {"mode=755", "size=1048576", "nr_inodes=256", NULL};
	int layer = tmpfs_make(size, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC), sources = -1;

	if (layer >= 0 && mkdirat(layer, "mnt", 0755) == 0 && mkdirat(layer, "mnt/data", 0755) == 0)
		sources = openat(layer, "mnt/data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sources < 0 || make_tool_mount(sources, options) < 0 || proc_make_covers(sources) < 0)
		fail("cannot make the layer over the image");
	close(sources);
	return layer;
}

static int move_source(int tree, const char *target)
{
	int result = tree < 0 ? -1 : sys_move_mount(tree, target), saved = errno;

	if (tree >= 0)
		close(tree);
	errno = saved;
	return result;
}

static int open_source(const char *parent, unsigned slot)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%u", parent, slot);
	return sys_open_tree(AT_FDCWD, path);
}

/*
 * Opens all sources before the template's root is detached. The kernel mounts a new /proc only while the mount namespace has
 * an uncovered one, such as the template's.
 */
int template_enter(const struct options *options, unsigned slot)
{
	bool is_jail = slot != NO_SLOT, has_tools = is_jail && options->tool_directory;
	int devs = open_source(DEVICES_PATH, slot), proc = is_jail ? proc_make() : -1,
	    tools = has_tools ? open_source(TOOLS_PATH, slot) : -1, root = overlay_make(LAYER_PATH ":" IMAGE_PATH);

	if (devs < 0 || (is_jail && proc < 0) || (has_tools && tools < 0) || root < 0)
		return -1;
	if (change_root(root, JAIL_PATH) < 0 || move_source(devs, "/dev") < 0 || (is_jail && move_source(proc, "/proc") < 0))
		return -1;
	close(root);
	if (options->tool_directory && move_source(sys_open_tree(AT_FDCWD, COVERS_PATH "/" RUN_SOURCE), "/run") < 0)
		return -1;
	return has_tools ? move_source(tools, options->tool_mount) : 0;
}

/* Runs as pid 1 of its own pid namespace: the template's /proc shows no process after it has ended. */
static _Noreturn void build(const struct options *options, int done)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	int image, layer, root, proc, tools;

	umask(0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		fail("cannot make a mount namespace");
	image = open_image(options->root);
	layer = make_layer(options);
	root = make_root(options);
	proc = proc_make();
	tools = options->tool_directory ? tooldir_mount(options) : -1;
	if (root < 0 || change_root(root, options->root) < 0 || sys_move_mount(image, IMAGE_PATH) < 0 ||
	    sys_mount_setattr(layer, "", AT_EMPTY_PATH, &read_only) < 0 || sys_move_mount(layer, LAYER_PATH) < 0 ||
	    sys_move_mount(proc, PROC_PATH) < 0 || (options->tool_directory && sys_move_mount(tools, TOOLS_PATH) < 0) ||
	    sys_mount_setattr(AT_FDCWD, "/", 0, &read_only) < 0)
		fail("cannot make the template");
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		fail("cannot make a user namespace");
	if (write_all(done, "1", 1) < 0)
		fail("cannot report the template");
	pause();
	_exit(0);
}

static int open_namespace(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fatal("cannot open the template");
	return fd;
}

void template_make(const struct options *options, int *template, int *userns)
{
	struct clone_args args = {.flags = CLONE_NEWNS | CLONE_NEWPID, .exit_signal = SIGCHLD};
	int done[2];
	char byte;
	pid_t pid;

	if (pipe2(done, O_CLOEXEC) < 0 || (pid = sys_clone3(&args)) < 0)
		fatal("cannot fork");
	if (pid == 0) {
		close(done[0]);
		build(options, done[1]);
	}
	close(done[1]);
	if (read(done[0], &byte, 1) != 1)
		fatal("cannot make the template");
	close(done[0]);
	*template = open_namespace(pid, "mnt");
	*userns = open_namespace(pid, "user");
	if (userns_map(pid, options) < 0)
		fatal("cannot map the ids of the user namespace of jails");
	if (kill(pid, SIGKILL) < 0 || waitpid(pid, NULL, 0) != pid)
		fatal("cannot end the process that built the template");
}
