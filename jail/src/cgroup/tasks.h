/*
 * What the processes of a run do at this moment, read from the jail's own /proc:
 * whether something runs or could, and if nothing does, whether time alone can
 * change that. Nothing that a program can write decides more than its own answer.
 */
#ifndef JAIL_TASKS_H
#define JAIL_TASKS_H

#include "cgroup/cgroup.h"

enum tasks_state {
	TASKS_RUN,    /* some task runs or could */
	TASKS_WAIT,   /* all are blocked, some for a limited time or in a way that is not known */
	TASKS_BLOCKED /* all are blocked until something else happens, however long that takes */
};

/* `proc`: the /proc of the jail, opened for reading; its process 1 does not count. */
enum tasks_state tasks_look(int proc, const struct cgroup *cgroup);

/* One task: the texts of its `stat` and `syscall` files. */
char task_letter(const char *stat);
enum tasks_state task_wait(const char *syscall);

#endif
