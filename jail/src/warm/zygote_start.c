#include "warm/zygote_start.h"

#include "cgroup/cgroup_tree.h"
#include "init/capability.h"
#include "init/confine.h"
#include "init/program.h"
#include "init/template.h"
#include "init/userns.h"
#include "lib/sys.h"
#include "lib/util.h"
#include "master/oom.h"
#include "master/slot.h"
#include "seccomp/seccomp.h"
#include "warm/zygote_wire.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS (ZYGOTE_GROUPS + CONTROLLERS)
#define OBJECT_NAME "zygote.so"

/* The shared object that zygotes load is part of jaild, so that both apply the same confinement. */
__asm__(".pushsection .rodata\n"
	"zygote_object: .incbin \"" ZYGOTE_FILE "\"\n"
	"zygote_object_end: .byte 0\n"
	".popsection\n");
extern const char zygote_object[], zygote_object_end[];

/* Opens jaild's own group in each hierarchy. */
static int open_groups(int *fds, struct zygote_setup *setup)
{
	setup->cgroup_version = (uint32_t)cgroup_tree.version;
	for (unsigned c = 0; cgroup_tree.version != 0 && c < CONTROLLERS; c++) {
		if (cgroup_hierarchy((enum controller)c) != c)
			continue;
		fds[setup->groups] = open(cgroup_tree.own[c], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fds[setup->groups++] < 0)
			return -1;
	}
	return 0;
}

static int make_object(int directory)
{
	int fd = openat(directory, OBJECT_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555), result;

	if (fd < 0)
		return -1;
	result = write_all(fd, zygote_object, (size_t)(zygote_object_end - zygote_object));
	close(fd);
	return result;
}

/* Links the entry file of the command to the script, so that the command line equals a program's. */
static int make_home(const struct zygote_options *own)
{
	const char *const options[] = {"mode=755", "size=4194304", "nr_inodes=64", NULL};
	int home = tmpfs_make(options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	if (home < 0 || make_object(home) < 0 || symlinkat(own->script, home, own->argv[1]) < 0)
		return -1;
	return sys_move_mount(home, JOB_DIRECTORY);
}

static int enter_own_namespaces(const struct jail_config *config, const struct zygote_options *own)
{
	const char *const options[] = {"mode=1777", "size=16777216", "nr_inodes=256", NULL};
	int tmp;

	if (setns(config->template, CLONE_NEWNS) < 0 ||
	    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0 || template_enter(config->options, NO_SLOT) < 0 ||
	    sethostname(HOSTNAME, strlen(HOSTNAME)) < 0 || make_home(own) < 0)
		return -1;
	tmp = tmpfs_make(options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return tmp < 0 || sys_move_mount(tmp, "/tmp") < 0 ? -1 : chdir(JOB_DIRECTORY);
}

static int keep_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct kept[2] = {{ZYGOTE_CAPABILITIES, ZYGOTE_CAPABILITIES, 0}, {0, 0, 0}};

	if (bounding_set_keep(ZYGOTE_CAPABILITIES) < 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -1;
	return syscall(SYS_capset, &header, kept) < 0 ? -1 : prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int arrange(const int fds[DESCRIPTORS], unsigned count)
{
	int high[DESCRIPTORS];

	for (unsigned i = 0; i < count; i++)
		if ((high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 100)) < 0)
			return -1;
	for (unsigned i = 0; i < count; i++)
		if (dup2(high[i], (int)i) < 0)
			return -1;
	return sys_close_range(count, ~0u, 0);
}

static struct seccomp_program policy;

static _Noreturn void become(const struct jail_config *config, const struct zygote_options *own, int fds[DESCRIPTORS],
			     unsigned count, pid_t master)
{
	slots_unblock_signals();
	/* Copies inherit the score and the signals, and become programs. */
	if (oom_kill_first() < 0 || program_reset_signals() < 0 || userns_enter(config->userns) < 0 ||
	    enter_own_namespaces(config, own) < 0 || (fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0 ||
	    confine_limits() < 0 || arrange(fds, count) < 0 || keep_capabilities() < 0)
		_exit(1);
	/* A change of ids clears the parent death signal, so it is set after the last one. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != master)
		_exit(1);
	if (!seccomp_build_for(&policy, POLICY_OF_ZYGOTES) || seccomp_load(&policy) < 0)
		_exit(1);
	umask(022);
	execve(own->argv[0], (char *const *)own->argv, (char *const *)own->env);
	_exit(1);
}

pid_t zygote_start(const struct jail_config *config, const struct zygote_options *own, const int line[2], int output,
		   int requests)
{
	int fds[DESCRIPTORS] = {[1] = output, [2] = output, [ZYGOTE_REQUESTS] = requests, [ZYGOTE_LINE] = line[1]};
	struct zygote_setup setup = {.copies = config->options->zygote_copies};
	pid_t pid = -1, master = getpid();

	if (open_groups(fds + ZYGOTE_GROUPS, &setup) == 0 &&
	    send(line[0], &setup, sizeof(setup), MSG_NOSIGNAL) == (ssize_t)sizeof(setup) && (pid = fork()) == 0)
		become(config, own, fds, ZYGOTE_GROUPS + setup.groups, master);
	for (unsigned i = 0; i < setup.groups; i++)
		close(fds[ZYGOTE_GROUPS + i]);
	return pid;
}
