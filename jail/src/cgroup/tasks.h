/*
 * The scheduling state of a run, read from the jail's own /proc: whether a task runs or is runnable, and if not,
 * whether a timeout alone can wake one. What a task can write into /proc affects its own state only.
 */
#ifndef JAIL_TASKS_H
#define JAIL_TASKS_H

#include "cgroup/cgroup.h"

#include <stdbool.h>
#include <sys/types.h>

enum tasks_state {
	TASKS_RUN,    /* a task runs or is runnable */
	TASKS_WAIT,   /* all are blocked, some with a timeout or in an unrecognised call */
	TASKS_BLOCKED /* all are blocked without a timeout */
};

/* `proc`: the /proc of the jail, opened for reading; its process 1 does not count. */
enum tasks_state tasks_look(int proc, const struct cgroup *cgroup);

/* Whether a task of the process is alive; exact while the run is frozen. */
bool tasks_live(int proc, pid_t process);

/* One task: the texts of its `stat` and `syscall` files. */
char task_letter(const char *stat);
enum tasks_state task_wait(const char *syscall);

#endif
