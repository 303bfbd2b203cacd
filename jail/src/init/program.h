/*
 * The process that becomes the program: a fork of init that executes it, or a copy
 * of a zygote that already is its interpreter. The job lies in a memory file: for
 * each item 'A' (argument) or 'E' (environment), its bytes, NUL.
 */
#ifndef JAIL_PROGRAM_H
#define JAIL_PROGRAM_H

#include "keeper/jail.h"

struct job {
	char *items; /* as they lie in the memory file */
	size_t size;
	char **argv, **envp;
};

/* What does not depend on the job: a session of its own, the program's output. */
void program_settle(void);

/* In a process that was born warm: sleeps until the keeper has a job. */
void program_wait_for_job(struct message *go);

/* In such a process: the program begins here, without an exec; the control channel ends. */
void program_begin_warm(const struct job *job);

/* What does: standard input, arguments, environment, limits. */
void program_take_job(const struct message *go, struct job *job);

/* Becomes the program, with default signals and no other descriptors; notifies the keeper when it cannot. */
_Noreturn void program_execute(const struct job *job);

/* Every disposition is the default, but a file that grows too large is an ordinary EFBIG. */
int program_reset_signals(void);

/*
 * Starts an interpreter before its job is there. It finds the descriptors of a confined process from FD_BASE_PRESTARTED on,
 * among them the object that speaks for it (interpreter/prestarted.c), and standard input empty.
 */
_Noreturn void program_prestart(const struct message *park);

/* The whole way of a cold start. */
_Noreturn void program_main(const struct message *go);

#endif
