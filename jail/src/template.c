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

static void make_read_only(int mount, const char *what)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};

	if (sys_mount_setattr(mount, "", AT_EMPTY_PATH, &attributes) < 0)
		fatal("cannot make %s read-only", what);
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
	if (sys_move_mount(tree, root) < 0 || chdir(root) < 0 || sys_pivot_root(".", ".") < 0 ||
	    sys_umount(".", MNT_DETACH) < 0 || chdir("/") < 0)
		fatal("cannot make the image the root");
	close(tree);
}

static void make_dev(void)
{
	const char *const options[] = {"mode=755", "size=65536", "nr_inodes=32", NULL};
	int dev = tmpfs_make(options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

	if (dev < 0)
		fatal("cannot make /dev");
	for (size_t i = 0; i < COUNT(devices); i++)
		if (mknodat(dev, devices[i].name, S_IFCHR | 0666,
			    makedev(devices[i].major, devices[i].minor)) < 0)
			fatal("cannot make /dev/%s", devices[i].name);
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlinkat(links[i].target, dev, links[i].name) < 0)
			fatal("cannot make /dev/%s", links[i].name);
	if (mkdirat(dev, "shm", 0755) < 0)
		fatal("cannot make /dev/shm");
	make_read_only(dev, "/dev");
	if (sys_move_mount(dev, "/dev") < 0)
		fatal("cannot mount /dev");
	close(dev);
}

static void make_covers(void)
{
	const char *const options[] = {"mode=755", "size=1048576", "nr_inodes=256", NULL};
	int covers = tmpfs_make(options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	if (covers < 0 || proc_make_covers(covers) < 0)
		fatal("cannot make the covers of /proc");
	make_read_only(covers, "the covers of /proc");
	if (sys_move_mount(covers, COVERS_PATH) < 0)
		fatal("cannot mount the covers of /proc");
	close(covers);
}

/* The mount point of the tool directory; the image needs to know nothing of it. */
static void make_tool_mount(const char *path)
{
	const char *const options[] = {"mode=755", "size=65536", "nr_inodes=8", NULL};
	int run = tmpfs_make(options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	if (run < 0 || mkdirat(run, path + strlen(TOOL_MOUNT_PARENT), 0755) < 0)
		fatal("cannot make %s", path);
	make_read_only(run, path);
	if (sys_move_mount(run, TOOL_MOUNT_PARENT) < 0)
		fatal("cannot mount " TOOL_MOUNT_PARENT);
	close(run);
}

static _Noreturn void build(const struct options *options, int done, pid_t master)
{
	umask(0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != master)
		fatal("cannot tie the maker of the template to jaild");
	if (unshare(CLONE_NEWNS) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		fatal("cannot make a mount namespace");
	enter_image(options->root);
	make_dev();
	make_covers();
	if (options->tool_directory)
		make_tool_mount(options->tool_mount);
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
