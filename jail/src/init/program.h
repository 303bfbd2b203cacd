/*
 * The process that becomes the program: a child of init that executes it, or the copy of a zygote, which already is its
 * interpreter. In the memory file of the job each item is 'A' (argument) or 'E' (environment), the bytes of the item, and a
 * NUL.
 */
#ifndef JAIL_PROGRAM_H
#define JAIL_PROGRAM_H

#include "keeper/jail.h"

struct job {
	char *items; /* the mapped memory file */
	size_t size;
	char **argv, **envp;
};

/* The set-up that does not depend on the job: a session of its own and the output streams. */
void program_settle(void);

/* In a warm process: waits until the keeper sends a job. */
void program_wait_for_job(struct message *go);

/* In a warm process: begins the program without an exec and closes the control channel. */
void program_begin_warm(const struct job *job);

/* The set-up that depends on the job: standard input, arguments, environment, limits. */
void program_load_job(const struct message *go, struct job *job);

/* Executes the program with default signals and no other descriptors; reports a failure to the keeper. */
_Noreturn void program_execute(const struct job *job);

/* Resets all signals to their defaults, except SIGXFSZ: a write beyond the file size limit fails with EFBIG instead. */
int program_reset_signals(void);

/*
 * Starts an interpreter before its job arrives. It has the descriptors of a confined process from FD_BASE_PRESTARTED on,
 * among them the object that it loads to receive the job (interpreter/prestarted.c), and an empty standard input.
 */
_Noreturn void program_prestart(const struct message *prestart);

/* A complete cold start. */
_Noreturn void program_main(const struct message *go);

#endif
