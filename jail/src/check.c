#include "check.h"

#include "cgroup_tree.h"
#include "freezer.h"
#include "proc.h"
#include "seccomp.h"
#include "sys.h"
#include "template.h"
#include "util.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in a child: 0 when the feature works, otherwise an errno. */
typedef int (*probe_function)(const struct options *options);

static int errno_of(long result)
{
	return result < 0 ? errno : 0;
}

static int probe_namespaces(const struct options *options)
{
	(void)options;
	return errno_of(unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
				CLONE_NEWCGROUP));
}

static int probe_user_namespace(const struct options *options)
{
	(void)options;
	return errno_of(unshare(CLONE_NEWUSER));
}

static int probe_mount_api(const struct options *options)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
	const char *const size[] = {"size=65536", "nr_inodes=16", NULL};
	int tree, tmpfs;

	if (unshare(CLONE_NEWNS) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno;
	tree = sys_open_tree(AT_FDCWD, options->root);
	if (tree < 0 || sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attributes) < 0)
		return errno;
	tmpfs = tmpfs_make(size, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return errno_of(tmpfs);
}

static int probe_image(const struct options *options)
{
	static const char *const needed[] = {"proc", "dev", "tmp", "mnt/data", "run"};
	int root = open(options->root, O_PATH | O_DIRECTORY);
	struct stat st;

	for (size_t i = 0; i < COUNT(needed); i++)
		if (root < 0 || fstatat(root, needed[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			return ENOENT;
	return 0;
}

static int probe_pivot_root(const struct options *options)
{
	int tree;

	if (unshare(CLONE_NEWNS) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno;
	tree = sys_open_tree(AT_FDCWD, options->root);
	if (tree < 0 || sys_move_mount(tree, options->root) < 0 || chdir(options->root) < 0)
		return errno;
	return errno_of(sys_pivot_root(".", "."));
}

static int probe_pidfd(const struct options *options)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .flags = CLONE_PIDFD};
	int fd = -1, result;
	pid_t pid;

	(void)options;
	args.pidfd = (uint64_t)(uintptr_t)&fd;
	pid = sys_clone3(&args);
	if (pid < 0)
		return errno;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	result = errno_of(sys_pidfd_send_signal(fd, SIGKILL));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return result;
}

static int probe_openat2(const struct options *options)
{
	int fd = sys_openat2(AT_FDCWD, ".", O_PATH | O_DIRECTORY,
			     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);

	(void)options;
	return errno_of(fd);
}

static int probe_close_range(const struct options *options)
{
	(void)options;
	return errno_of(sys_close_range(1000, ~0u, CLOSE_RANGE_CLOEXEC));
}

static int probe_seccomp(const struct options *options)
{
	static struct seccomp_program policy;

	(void)options;
	if (!seccomp_build(&policy))
		return E2BIG;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(&policy) < 0)
		return errno;
	/* The proof: a call that root may make is gone. */
	return unshare(CLONE_NEWNS) < 0 && errno == ENOSYS ? 0 : EPERM;
}

static int probe_proc(const struct options *options)
{
	(void)options;
	return errno_of(proc_scan());
}

static int probe_cgroups(const struct options *options)
{
	char base[PATH_MAX];

	if (options->no_cgroups || cgroup_find_v2(base, sizeof(base)))
		return 0;
	for (unsigned c = 0; c < CONTROLLERS; c++) {
		char path[PATH_MAX + 96];

		if (!cgroup_find_v1((enum controller)c, base, sizeof(base)))
			return ENOENT;
		snprintf(path, sizeof(path), "%.3900s/%s-check-%d", base, options->cgroup, getpid());
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return errno;
		rmdir(path);
	}
	return 0;
}

/* An empty group stands still at once. */
static int try_freezer(int version, const char *group)
{
	struct freezer freezer;
	int result;

	if (mkdir(group, 0755) < 0 && errno != EEXIST)
		return errno;
	result = freezer_open(&freezer, version, group) < 0 || freezer_freeze(&freezer) < 0 ||
		 freezer_thaw(&freezer) < 0 ? errno : 0;
	freezer_close(&freezer);
	rmdir(group);
	return result;
}

static int probe_freezer(const struct options *options)
{
	char base[PATH_MAX], group[PATH_MAX + 96];
	int version = cgroup_find_v2(base, sizeof(base)) ? 2 : 1;

	if (options->no_cgroups)
		return 0;
	if (version == 1 && !cgroup_find_v1(CONTROLLER_FREEZER, base, sizeof(base)))
		return ENOENT;
	snprintf(group, sizeof(group), "%.3900s/%s-check-%d", base, options->cgroup, getpid());
	return try_freezer(version, group);
}

static const struct {
	const char *name;
	probe_function probe;
	const char *fix;
} features[] = {
	{"namespaces", probe_namespaces, "run as real root with CAP_SYS_ADMIN (containers: privileged)"},
	{"user-namespace", probe_user_namespace,
	 "sysctl user.max_user_namespaces > 0; lift kernel.apparmor_restrict_unprivileged_userns or the profile"},
	{"image", probe_image, "build the image; it needs /proc /dev /tmp /mnt/data /run"},
	{"mount-api", probe_mount_api, "Linux 5.12 or newer; no seccomp profile around jaild that blocks mounts"},
	{"pivot-root", probe_pivot_root, "the host's root must not be the initial ramfs"},
	{"proc", probe_proc, "mount /proc"},
	{"pidfd", probe_pidfd, "Linux 5.4 or newer; no seccomp profile around jaild that blocks clone3"},
	{"openat2", probe_openat2, "Linux 5.6 or newer"},
	{"close-range", probe_close_range, "Linux 5.11 or newer"},
	{"seccomp", probe_seccomp, "a kernel with CONFIG_SECCOMP_FILTER"},
	{"cgroups", probe_cgroups,
	 "cgroup v2 with memory, pids and cpu delegated to jaild, or v1 with freezer, memory, pids, cpu and cpuacct"},
	{"freezer", probe_freezer, "Linux 5.2 or newer with cgroup v2, or v1 with freezer"},
};

static int run_probe(probe_function probe, const struct options *options)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(probe(options) & 0xff);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return EIO;
	return WEXITSTATUS(status);
}

bool check_system(const struct options *options)
{
	bool safe = !options->no_cgroups;

	for (size_t i = 0; i < COUNT(features); i++) {
		int error = run_probe(features[i].probe, options);

		if (error == 0)
			printf("ok %s\n", features[i].name);
		else
			printf("fail %s %s (%s)\n", features[i].name, features[i].fix, strerror(error));
		safe = safe && error == 0;
	}
	if (options->no_cgroups)
		puts("fail limits --no-cgroups leaves memory, processes and CPU unlimited");
	return safe;
}
