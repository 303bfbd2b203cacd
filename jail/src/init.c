/*
 * pid 1 of the jail. Until USER_NS it is root on the host, in namespaces of its
 * own; from VERIFY on it has the power of the program and no more. It trusts the
 * keeper and touches nothing that a program made.
 */
#include "jail.h"
#include "program.h"
#include "step.h"
#include "sys.h"
#include "template.h"
#include "title.h"
#include "util.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOSTNAME "sandbox"
#define FACTS_PATH "/tmp" /* hidden by the jail's own /tmp */
#define CAPABILITIES_MAX 64

#define MUST(step, call)                                          \
	do {                                                      \
		if ((call) < 0)                                   \
			report_failure(plan->control, STEP_##step); \
	} while (0)

static int mount_proc(void)
{
	return sys_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static int make_proc_read_only(void)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};

	return sys_mount_setattr(AT_FDCWD, "/proc", AT_RECURSIVE, &attributes);
}

static int mount_tools(const struct jail_plan *plan)
{
	return plan->tools < 0 ? 0 : sys_move_mount(plan->tools, plan->config->options->tool_mount);
}

static rlim_t lower_of(rlim_t a, rlim_t b)
{
	return a < b ? a : b;
}

/* Fixed values, whoever started jaild; only its hard limits are a ceiling where root may not pass them. */
static int set_base_limits(void)
{
	static const struct {
		int resource;
		struct rlimit limit;
	} base[] = {
		/* One byte: with 0 the kernel would still start a crash handler that core_pattern names. */
		{RLIMIT_CORE, {1, 1}},
		{RLIMIT_AS, {RLIM_INFINITY, RLIM_INFINITY}}, {RLIMIT_CPU, {RLIM_INFINITY, RLIM_INFINITY}},
		{RLIMIT_DATA, {RLIM_INFINITY, RLIM_INFINITY}},
		{RLIMIT_FSIZE, {RLIM_INFINITY, RLIM_INFINITY}}, {RLIMIT_LOCKS, {RLIM_INFINITY, RLIM_INFINITY}},
		{RLIMIT_MEMLOCK, {65536, 65536}}, {RLIMIT_MSGQUEUE, {0, 0}}, {RLIMIT_NICE, {0, 0}},
		{RLIMIT_NOFILE, {1048576, 1048576}}, {RLIMIT_NPROC, {65536, 65536}},
		{RLIMIT_RSS, {RLIM_INFINITY, RLIM_INFINITY}}, {RLIMIT_RTPRIO, {0, 0}},
		{RLIMIT_RTTIME, {RLIM_INFINITY, RLIM_INFINITY}}, {RLIMIT_SIGPENDING, {4096, 4096}},
		{RLIMIT_STACK, {8u << 20, RLIM_INFINITY}},
	};

	for (size_t i = 0; i < COUNT(base); i++) {
		__rlimit_resource_t resource = (__rlimit_resource_t)base[i].resource;
		struct rlimit limit;

		if (getrlimit(resource, &limit) < 0)
			return -1;
		limit.rlim_max = lower_of(base[i].limit.rlim_max, limit.rlim_max);
		limit.rlim_cur = lower_of(base[i].limit.rlim_cur, limit.rlim_max);
		if (setrlimit(resource, &base[i].limit) < 0 && setrlimit(resource, &limit) < 0)
			return -1;
	}
	return 0;
}

static int wait_for_map(int control)
{
	struct message message = {.kind = MESSAGE_USER_NS};

	if (send(control, &message, sizeof(message), MSG_NOSIGNAL) < 0)
		return -1;
	if (recv(control, &message, sizeof(message), 0) != (ssize_t)sizeof(message) ||
	    message.kind != MESSAGE_MAPPED) {
		errno = EPIPE;
		return -1;
	}
	return 0;
}

static int forbid_namespaces(int host_proc)
{
	static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"};
	char path[64];

	for (size_t i = 0; i < COUNT(kinds); i++) {
		snprintf(path, sizeof(path), "sys/user/max_%s_namespaces", kinds[i]);
		if (write_file_at(host_proc, path, "0") < 0)
			return -1;
	}
	return 0;
}

static int empty_bounding_set(void)
{
	for (unsigned long capability = 0; capability < CAPABILITIES_MAX; capability++) {
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0)
			continue;
		/* The first number that the kernel does not know ends the list. */
		return errno == EINVAL && capability > CAP_AUDIT_READ ? 0 : -1;
	}
	return 0;
}

static int lock_secure_bits(void)
{
	return prctl(PR_SET_SECUREBITS,
		     SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		     0, 0, 0);
}

static int take_identity(void)
{
	return setresgid(JOB_GID, JOB_GID, JOB_GID) < 0 ? -1 : setresuid(JOB_UID, JOB_UID, JOB_UID);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_capset, &header, none);
}

/*
 * Done twice, because a uid change clears the signal. A keeper that dies in
 * between, or before, shows as the end of the control channel.
 */
static int tie_to_keeper(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -1 : prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Reads back what the kernel really granted; any surplus is a failure. */
static int verify(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct held[2];
	uid_t uid[3];
	gid_t gid[3];

	errno = EPERM;
	if (syscall(SYS_capget, &header, held) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		if (held[i].effective | held[i].permitted | held[i].inheritable)
			return -1;
	for (unsigned long capability = 0; capability < CAPABILITIES_MAX; capability++)
		if (prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1)
			return -1;
	errno = EPERM;
	if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		if (uid[i] != JOB_UID || gid[i] != JOB_GID)
			return -1;
	if (getgroups(0, NULL) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || getpid() != 1)
		return -1;
	return 0;
}

/* Moves the descriptors that are still needed to their places and closes all others. */
static int arrange_descriptors(const struct jail_plan *plan)
{
	const int wanted[] = {plan->status, plan->control, plan->stream[STREAM_OUT],
			      plan->stream[STREAM_ERR], plan->stdin_data, plan->job};
	int high[COUNT(wanted)], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -1;
	for (size_t i = 0; i < COUNT(wanted); i++) {
		high[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, 100);
		if (high[i] < 0)
			return -1;
	}
	for (int fd = 0; fd < FD_STATUS; fd++)
		if (dup2(null, fd) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(wanted); i++)
		if (dup3(high[i], FD_STATUS + (int)i, O_CLOEXEC) < 0)
			return -1;
	return sys_close_range(FD_FIRST_UNUSED, ~0u, 0);
}

/* Reaps everything; the end of the program is the end of the jail. */
static _Noreturn void wait_for_program(pid_t program)
{
	int status;

	for (;;) {
		pid_t pid = wait4(-1, &status, __WALL, NULL);

		if (pid == program) {
			(void)write_all(FD_STATUS, &status, sizeof(status));
			_exit(0);
		}
		if (pid < 0 && errno != EINTR)
			_exit(1);
	}
}

_Noreturn void init_main(const struct jail_plan *plan)
{
	pid_t program;

	close(plan->keeper_control);
	MUST(PARENT_DEATH, tie_to_keeper());
	MUST(CGROUP_JOIN, cgroup_join(plan->cgroup));
	MUST(CGROUP_NS, unshare(CLONE_NEWCGROUP));
	MUST(PROC, mount_proc());
	MUST(COVER, sys_move_mount(plan->facts, FACTS_PATH));
	MUST(COVER, proc_cover(COVERS_PATH, FACTS_PATH));
	MUST(PROC_READ_ONLY, make_proc_read_only());
	MUST(TMP, sys_move_mount(plan->tmp, "/tmp"));
	MUST(SHM, sys_move_mount(plan->shm, "/dev/shm"));
	MUST(WORKSPACE, sys_move_mount(plan->workspace, "/mnt/data"));
	MUST(WORKSPACE, chdir("/mnt/data"));
	MUST(TOOLS, mount_tools(plan));
	MUST(HOSTNAME, sethostname(HOSTNAME, strlen(HOSTNAME)));
	MUST(HOSTNAME, setdomainname("(none)", strlen("(none)")));
	MUST(RLIMITS, set_base_limits());
	MUST(GROUPS, setgroups(0, NULL));
	MUST(USER_NS, unshare(CLONE_NEWUSER));
	MUST(USER_MAP, wait_for_map(plan->control));
	MUST(NS_LIMITS, forbid_namespaces(plan->host_proc));
	MUST(BOUNDING_SET, empty_bounding_set());
	MUST(SECURE_BITS, lock_secure_bits());
	MUST(IDENTITY, take_identity());
	MUST(CAPABILITIES, drop_capabilities());
	MUST(PARENT_DEATH, tie_to_keeper());
	MUST(NO_NEW_PRIVS, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(VERIFY, verify());
	umask(022);
	title_set("init");
	MUST(CLOSE, arrange_descriptors(plan));
	if (seccomp_load(plan->config->policy) < 0)
		report_failure(FD_CONTROL, STEP_SECCOMP);
	program = fork();
	if (program < 0)
		report_failure(FD_CONTROL, STEP_FORK);
	if (program == 0)
		program_main();
	/* As long as init holds its end of the channel, the keeper does not see the exec. */
	if (sys_close_range(FD_CONTROL, ~0u, 0) < 0)
		_exit(1);
	wait_for_program(program);
}
