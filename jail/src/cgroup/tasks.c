#include "cgroup/tasks.h"

#include "lib/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TASKS_MAX 1024 /* with more tasks, one is assumed to run */
#define LISTING 32768

/* How a blocking system call states its timeout. */
enum limit { NEVER_LIMITED, POINTER, MILLISECONDS, FUTEX, LOCK };

static const struct {
	long number;
	enum limit limit;
	unsigned argument; /* holds the timeout; NULL or a negative number means none */
} waits[] = {
#ifdef SYS_poll
	{SYS_poll, MILLISECONDS, 2},
#endif
#ifdef SYS_epoll_wait
	{SYS_epoll_wait, MILLISECONDS, 3},
#endif
#ifdef SYS_select
	{SYS_select, POINTER, 4},
#endif
#ifdef SYS_pause
	{SYS_pause, NEVER_LIMITED, 0},
#endif
#ifdef SYS_open
	{SYS_open, NEVER_LIMITED, 0},
#endif
	{SYS_epoll_pwait, MILLISECONDS, 3},
	{SYS_epoll_pwait2, POINTER, 3},
	{SYS_ppoll, POINTER, 2},
	{SYS_pselect6, POINTER, 4},
	{SYS_rt_sigtimedwait, POINTER, 2},
	{SYS_recvmmsg, POINTER, 4},
	{SYS_futex, FUTEX, 3},
	{SYS_fcntl, LOCK, 1},
	{SYS_flock, NEVER_LIMITED, 0},
	{SYS_read, NEVER_LIMITED, 0},
	{SYS_readv, NEVER_LIMITED, 0},
	{SYS_recvfrom, NEVER_LIMITED, 0},
	{SYS_recvmsg, NEVER_LIMITED, 0},
	{SYS_accept, NEVER_LIMITED, 0},
	{SYS_accept4, NEVER_LIMITED, 0},
	{SYS_wait4, NEVER_LIMITED, 0},
	{SYS_waitid, NEVER_LIMITED, 0},
	{SYS_rt_sigsuspend, NEVER_LIMITED, 0},
	{SYS_openat, NEVER_LIMITED, 0}, /* a FIFO without its other end */
};

char task_letter(const char *stat)
{
	/* The name before it is chosen by the program and may contain anything, ')' included. */
	const char *end = strrchr(stat, ')');

	return end && end[1] == ' ' ? end[2] : '\0';
}

static bool futex_has_no_limit(uint64_t operation, uint64_t timeout)
{
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_WAIT_REQUEUE_PI:
		return timeout == 0;
	default:
		return false;
	}
}

static bool has_no_limit(size_t wait, const uint64_t argument[6])
{
	uint64_t value = argument[waits[wait].argument];

	switch (waits[wait].limit) {
	case NEVER_LIMITED:
		return true;
	case POINTER:
		return value == 0;
	case MILLISECONDS:
		return (int32_t)value < 0;
	case FUTEX:
		return futex_has_no_limit(argument[1], value);
	case LOCK:
		return (int32_t)value == F_SETLKW || (int32_t)value == F_OFD_SETLKW;
	}
	return false;
}

enum tasks_state task_wait(const char *text)
{
	uint64_t argument[6];
	char *at;
	long number;

	if (strncmp(text, "running", 7) == 0)
		return TASKS_RUN;
	number = strtol(text, &at, 10);
	if (at == text)
		return TASKS_WAIT;
	for (size_t i = 0; i < COUNT(argument); i++) {
		const char *start = at;

		argument[i] = strtoull(start, &at, 16);
		if (at == start)
			return TASKS_WAIT;
	}
	for (size_t i = 0; i < COUNT(waits); i++)
		if (waits[i].number == number && has_no_limit(i, argument))
			return TASKS_BLOCKED;
	return TASKS_WAIT;
}

/* The text of one small file; false when the task is gone or the file may not be read. */
static bool read_text(int directory, const char *name, const char *file, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", name, file);
	fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static enum tasks_state look_at_task(int tasks, const char *tid)
{
	char text[192];

	if (!read_text(tasks, tid, "stat", text, sizeof(text)))
		return TASKS_BLOCKED; /* it ended */
	switch (task_letter(text)) {
	case 'Z':
	case 'X':
	case 'T': /* only another task can continue it */
		return TASKS_BLOCKED;
	case 'S':
		return read_text(tasks, tid, "syscall", text, sizeof(text)) ? task_wait(text) : TASKS_WAIT;
	default:
		return TASKS_RUN;
	}
}

/* Visits the numbered entries of a directory, up to the first TASKS_RUN, and returns the minimum of all states. */
typedef enum tasks_state (*visit)(int directory, const char *name, unsigned *budget);

static enum tasks_state visit_numbers(int directory, char *listing, unsigned *budget, visit look)
{
	enum tasks_state least = TASKS_BLOCKED;
	ssize_t size;

	while ((size = getdents64(directory, listing, LISTING)) > 0)
		for (char *at = listing; at < listing + size; at += ((struct dirent64 *)at)->d_reclen) {
			const char *name = ((struct dirent64 *)at)->d_name;
			enum tasks_state state;

			if (*name < '1' || *name > '9')
				continue;
			state = look(directory, name, budget);
			if (state < least)
				least = state;
			if (least == TASKS_RUN)
				return TASKS_RUN;
		}
	return size < 0 && errno != ENOENT ? TASKS_RUN : least;
}

static enum tasks_state visit_task(int directory, const char *name, unsigned *budget)
{
	return (*budget)-- == 0 ? TASKS_RUN : look_at_task(directory, name);
}

static enum tasks_state visit_tasks(int proc, const char *name, unsigned *budget, visit look)
{
	static char listing[LISTING] __attribute__((aligned(8)));
	enum tasks_state state;
	char path[32];
	int tasks;

	snprintf(path, sizeof(path), "%.20s/task", name);
	tasks = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tasks < 0)
		return errno == ENOENT || errno == ESRCH ? TASKS_BLOCKED : TASKS_RUN;
	state = visit_numbers(tasks, listing, budget, look);
	close(tasks);
	return state;
}

static enum tasks_state visit_process(int proc, const char *name, unsigned *budget)
{
	return strcmp(name, "1") == 0 ? TASKS_BLOCKED : visit_tasks(proc, name, budget, visit_task);
}

enum tasks_state tasks_look(int proc, const struct cgroup *cgroup)
{
	static char listing[LISTING] __attribute__((aligned(8)));
	char before[1024] = "", after[1024] = "";
	unsigned budget = TASKS_MAX;
	enum tasks_state state;

	if (lseek(proc, 0, SEEK_SET) < 0)
		return TASKS_RUN;
	cgroup_cpu_text(cgroup, before, sizeof(before));
	state = visit_numbers(proc, listing, &budget, visit_process);
	/* A task that ran after its visit, or woke a visited one, has used CPU time. */
	cgroup_cpu_text(cgroup, after, sizeof(after));
	return strcmp(before, after) == 0 ? state : TASKS_RUN;
}

static enum tasks_state visit_living(int directory, const char *name, unsigned *budget)
{
	char text[192], letter;

	(void)budget;
	letter = read_text(directory, name, "stat", text, sizeof(text)) ? task_letter(text) : 'X';
	return letter == 'Z' || letter == 'X' ? TASKS_BLOCKED : TASKS_RUN;
}

bool tasks_live(int proc, pid_t process)
{
	char name[32];

	snprintf(name, sizeof(name), "%d", (int)process);
	return visit_tasks(proc, name, NULL, visit_living) == TASKS_RUN;
}
