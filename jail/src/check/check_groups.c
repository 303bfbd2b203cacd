/*
 * Checks each controller through the code that runs use: limits must be enforced and usage must be counted. The groups
 * of slot 0 must exist and be empty.
 */
#include "check/check.h"

#include "cgroup/cgroup.h"
#include "lib/sys.h"
#include "lib/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define MEMORY_LIMIT (16u << 20)
#define TOO_MUCH (64u << 20)
#define ROOM (64u << 20)
#define BUSY_US 20000

typedef int (*member_function)(void);

static struct cgroup group;

/* Starts a process in the group; it dies with this one. */
static pid_t start_member(member_function work)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	pid_t pid;

	if (group.clone_fd >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)group.clone_fd;
	}
	pid = sys_clone3(&args);
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || cgroup_join(&group) < 0)
			_exit(errno);
		_exit(work());
	}
	return pid;
}

static int begin(uint64_t memory, uint64_t processes)
{
	if (cgroup_open(&group, 0) < 0 || cgroup_begin(&group, memory, processes) < 0)
		return errno ? errno : EIO;
	return 0;
}

/* 0 when the process was killed, or ended by itself, as `killed` expects. */
static int end_of(pid_t pid, bool killed)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return errno;
	if (WIFSIGNALED(status))
		return killed && WTERMSIG(status) == SIGKILL ? 0 : EINTR;
	if (WEXITSTATUS(status) != 0)
		return WEXITSTATUS(status);
	return killed ? EPROTO : 0;
}

static int use_memory(void)
{
	char *memory = mmap(NULL, TOO_MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return errno;
	for (size_t at = 0; at < TOO_MUCH; at += 4096)
		((volatile char *)memory)[at] = 1;
	return 0;
}

static int probe_memory(const struct options *options)
{
	int error = begin(MEMORY_LIMIT, 8);
	uint64_t kills;

	(void)options;
	if (error == 0)
		error = end_of(start_member(use_memory), true);
	if (error != 0)
		return error;
	return cgroup_oom_kills(&group, &kills) == 0 && kills > 0 ? 0 : EPROTO;
}

static int wait_forever(void)
{
	while (pause() < 0)
		;
	return 0;
}

static int make_processes(void)
{
	pid_t first = fork(), second;

	if (first == 0)
		_exit(wait_forever());
	if (first < 0)
		return errno;
	second = fork();
	if (second == 0)
		_exit(0);
	return second < 0 && errno == EAGAIN ? 0 : EPROTO;
}

/* Two processes are allowed. The first child stays alive for groups_are_clean to kill. */
static int probe_processes(const struct options *options)
{
	int error = begin(ROOM, 2);
	uint64_t refused;

	(void)options;
	if (error == 0)
		error = end_of(start_member(make_processes), false);
	if (error != 0)
		return error;
	return cgroup_forks_refused(&group, &refused) == 0 && refused > 0 ? 0 : EPROTO;
}

static uint64_t own_cpu_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

static int be_busy(void)
{
	uint64_t started = own_cpu_us();

	while (own_cpu_us() - started < BUSY_US)
		;
	return 0;
}

static int probe_cpu(const struct options *options)
{
	int error = begin(ROOM, 8);
	uint64_t used;

	(void)options;
	if (error == 0)
		error = end_of(start_member(be_busy), false);
	if (error != 0)
		return error;
	/* Each kernel counter rounds differently. */
	return cgroup_cpu_us(&group, &used) == 0 && used >= BUSY_US / 2 ? 0 : EPROTO;
}

static int probe_freezer(const struct options *options)
{
	int error = begin(ROOM, 8);
	pid_t pid = error == 0 ? start_member(wait_forever) : -1;

	(void)options;
	if (pid < 0)
		return error ? error : errno;
	if (freezer_freeze(&group.freezer, FREEZE_US) < 0 || freezer_thaw(&group.freezer) < 0)
		error = errno;
	kill(pid, SIGKILL);
	return error != 0 ? error : end_of(pid, true);
}

static bool swap_is_on(void)
{
	char text[4096];
	ssize_t size = read_file_at(AT_FDCWD, "/proc/swaps", text, sizeof(text));
	const char *second = size > 0 ? strchr(text, '\n') : NULL;

	return second && second[1] != '\0';
}

static int probe_swap(const struct options *options)
{
	(void)options;
	if (!swap_is_on())
		return 0;
	return cgroup_forbids_swap(0) ? 0 : ENOENT;
}

const struct feature group_features[] = {
	{"cgroup-memory", probe_memory, "memory limits are not enforced or kills not counted: enable the memory controller",
	 NEEDED},
	{"cgroup-pids", probe_processes, "process limits are not enforced or not counted: Linux 5.2, pids controller",
	 NEEDED},
	{"cgroup-cpu", probe_cpu, "CPU time is not counted: enable the cpu controller (v1: cpu and cpuacct)", NEEDED},
	{"cgroup-freezer", probe_freezer, "Linux 5.2 or newer with cgroup v2, or v1 with freezer", NEEDED},
	{"swap", probe_swap, "memory of runs may be swapped out: swapoff -a, or boot with swapaccount=1", RECOMMENDED},
};
const unsigned group_feature_count = COUNT(group_features);
