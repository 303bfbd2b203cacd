#include "interpreter/enter.h"

#include "lib/sys.h"
#include "lib/util.h"
#include "seccomp/seccomp.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BETWEEN_PID 300 /* pid of the intermediate process, so that the program gets pid 2 (FIRST_PROGRAM) */
#define ADOPTION_MS 2000
#define DESCRIPTORS_LOOKED_AT 1024

static struct seccomp_program policy;
static struct zygote_setup setup;
static uint32_t copies;

/* No loaded library may rely on an open file: copies would find it closed. */
static bool holds_nothing_else(void)
{
	for (int fd = ZYGOTE_GROUPS + (int)setup.groups; fd < DESCRIPTORS_LOOKED_AT; fd++)
		if (fcntl(fd, F_GETFD) >= 0) {
			fprintf(stderr, "descriptor %d is open\n", fd);
			return false;
		}
	return true;
}

bool zygote_begin(void)
{
	if (!seccomp_build(&policy) || recv(ZYGOTE_LINE, &setup, sizeof(setup), 0) != (ssize_t)sizeof(setup) ||
	    !holds_nothing_else())
		return false;
	/* With this flag unshare only checks: it fails when the process has a second thread. */
	return unshare(CLONE_THREAD) == 0;
}

static void notify_master(char what)
{
	(void)send(ZYGOTE_LINE, &what, 1, MSG_NOSIGNAL);
}

void zygote_is_complete(void)
{
	notify_master(ZYGOTE_READY);
}

static void close_given(struct entry *entry)
{
	for (size_t i = 0; i < GIVEN; i++)
		close(entry->given[i]);
}

bool zygote_take(struct entry *entry)
{
	for (;;) {
		struct pollfd wait[] = {{ZYGOTE_LINE, POLLIN, 0}, {ZYGOTE_REQUESTS, POLLIN, 0}};

		if (poll(wait, COUNT(wait), -1) < 0 && errno != EINTR)
			return false;
		if (wait[0].revents != 0)
			return false;
		/* A zygote of another generation may have taken the request first. */
		if (wait[1].revents == 0 || !zygote_request_receive(ZYGOTE_REQUESTS, &entry->request, entry->given))
			continue;
		if (++copies == setup.copies)
			notify_master(ZYGOTE_OLD);
		return true;
	}
}

/* Inlined, because the new process runs on this very stack: it must not return from the calling frame. */
static inline __attribute__((always_inline)) long clone_here(struct clone_args *args)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args))
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long number __asm__("x8") = SYS_clone3;
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = (long)sizeof(*args);

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(number), "r"(x1) : "memory");
	return x0;
#endif
}

/*
 * An intermediate process in the jail's pid namespace forks the program's process and ends. The jail's first process then
 * adopts the program's process, so that it is its parent, as in a cold start. The intermediate process shares the zygote's
 * memory, and the zygote is suspended meanwhile, so pages are copied once and not twice.
 */
static __attribute__((noinline)) long fork_through(struct clone_args *args)
{
	long between = clone_here(args);
	pid_t program;

	if (between != 0)
		return between;
	program = fork();
	if (program != 0)
		_exit(program < 0 ? 1 : 0);
	return 0;
}

static int slot_path(char *path, size_t size, uint32_t slot, const char *file)
{
	return snprintf(path, size, "slot-%u%s", slot, file) < (int)size ? 0 : -1;
}

static long fork_into(const struct entry *entry)
{
	const pid_t pid = BETWEEN_PID;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1,
	};
	char path[32];
	long result;

	if (setup.cgroup_version == 2) {
		int group = slot_path(path, sizeof(path), entry->request.slot, "") < 0
				    ? -1
				    : openat(ZYGOTE_GROUPS, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (group < 0)
			return -1;
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)group;
	}
	/* setns changes the pid namespace of later children only. The zygote makes no other children. */
	if (setns(entry->given[GIVEN_PID], 0) < 0)
		return -1;
	result = fork_through(&args);
	if (result == 0)
		return 0;
	if (args.flags & CLONE_INTO_CGROUP)
		close((int)args.cgroup);
	if (result < 0) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

bool zygote_fork(struct entry *entry)
{
	struct message message = {.kind = MESSAGE_FAILED, .step = STEP_FORK};
	long between;
	int status = 0;

	between = fork_into(entry);
	if (between == 0)
		return true;
	message.error = errno;
	if (between > 0 && waitpid((pid_t)between, &status, 0) == between && status == 0) {
		close_given(entry);
		return false;
	}
	(void)send(entry->given[GIVEN_CONTROL], &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
	close_given(entry);
	return false;
}

/* On v2 the process was created inside its group (CLONE_INTO_CGROUP). */
static int join_groups(uint32_t slot)
{
	char path[32];

	if (setup.cgroup_version != 1)
		return 0;
	if (slot_path(path, sizeof(path), slot, "/tasks") < 0)
		return -1;
	for (uint32_t i = 0; i < setup.groups; i++)
		if (write_file_at(ZYGOTE_GROUPS + (int)i, path, "0") < 0)
			return -1;
	return 0;
}

/* A process that is cloned with CLONE_VM has no area for restartable sequences (rseq), and neither has its child. */
static void register_sequences(void)
{
	if (__rseq_size > 0)
		(void)syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, 32, 0, RSEQ_SIG);
}

/* True when init is the parent and the intermediate process has also been reaped, so that no program can see it. */
static bool is_alone(void)
{
	return getppid() == 1 && kill(BETWEEN_PID, 0) < 0 && errno == ESRCH;
}

static int await_adoption(void)
{
	const struct timespec moment = {.tv_nsec = 50000};
	uint64_t deadline = monotonic_us() + ADOPTION_MS * 1000;

	while (!is_alone()) {
		if (monotonic_us() > deadline) {
			errno = ETIMEDOUT;
			return -1;
		}
		nanosleep(&moment, NULL);
	}
	return 0;
}

void zygote_enter(const struct entry *entry)
{
	const int *given = entry->given;
	const int wanted[CONFINED_FDS] = {-1, given[GIVEN_CONTROL], given[GIVEN_OUT], given[GIVEN_ERR],
					  given[GIVEN_STDIN], given[GIVEN_JOB], -1};
	int control = given[GIVEN_CONTROL];

	register_sequences();
	MUST(control, CGROUP_JOIN, join_groups(entry->request.slot));
	MUST(control, RLIMITS, confine_limits());
	/* The user namespace comes last: inside it the process has no capabilities over the other namespaces. */
	for (size_t i = GIVEN_MNT; i < NAMESPACES; i++)
		MUST(control, ENTER, setns(given[i], 0));
	MUST(control, WORKSPACE, chdir(JOB_DIRECTORY));
	confine_identity(control, FIRST_PROGRAM);
	umask(022);
	MUST(control, CLOSE, confine_descriptors(wanted));
	/* An exec would leave the process dumpable, so that the program can read its own /proc entries. */
	MUST(FD_CONTROL, ENTER, prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	MUST(FD_CONTROL, SECCOMP, seccomp_load(&policy));
	program_settle();
	MUST(FD_CONTROL, ENTER, await_adoption());
}

void zygote_await_job(struct job *job, uint32_t word)
{
	struct message message = {.kind = MESSAGE_READY, .word = word};

	if (send(FD_CONTROL, &message, sizeof(message), MSG_NOSIGNAL) < 0)
		_exit(126);
	program_wait_for_job(&message);
	program_load_job(&message, job);
}

void zygote_close_rest(void)
{
	MUST(FD_CONTROL, CLOSE, sys_close_range(FD_STATUS, FD_STATUS, 0));
	MUST(FD_CONTROL, CLOSE, sys_close_range(FD_OUT, ~0u, 0));
}
