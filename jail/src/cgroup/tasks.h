/*
 * What the processes of a run do at this moment, read from the jail's own /proc:
 * whether something runs or could, and if nothing does, whether time alone can
 * change that. Nothing that a program can write decides more than its own answer.
 */
#ifndef JAIL_TASKS_H
#define JAIL_TASKS_H

#include "cgroup/cgroup.h"

#include <stdbool.h>
#include <sys/types.h>

enum tasks_state {
	TASKS_RUN,    /* some task runs or could */
	TASKS_WAIT,   /* all are blocked, some for a limited time or in a way that is not known */
	TASKS_BLOCKED /* all are blocked until something else happens, however long that takes */
};

/* `proc`: the /proc of the jail, opened for reading; its process 1 does not count. */
enum tasks_state tasks_look(int proc, const struct cgroup *cgroup);

/* Whether some task of the process has not ended; exact where everything stands still. */
bool tasks_live(int proc, pid_t process);

/* One task: the texts of its `stat` and `syscall` files. */
char task_letter(const char *stat);
enum tasks_state task_wait(const char *syscall);

#endif
