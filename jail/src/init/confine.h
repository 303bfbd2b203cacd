/*
 * The confinement that every process passes before it becomes a program: the first process of a jail and the copy of
 * a zygote alike. A step that fails is reported on the control channel and ends the process.
 */
#ifndef JAIL_CONFINE_H
#define JAIL_CONFINE_H

#include "lib/step.h"

#include <sys/types.h>

/*
 * Descriptors of a confined process; 0, 1 and 2 are /dev/null until the program's are set. In a pre-started interpreter
 * they are above its own descriptors: the object that it loads is built with FD_BASE_PRESTARTED.
 */
#define FD_BASE_USUAL 3
#define FD_BASE_PRESTARTED 500
#ifndef FD_BASE
#define FD_BASE FD_BASE_USUAL
#endif
enum { FD_STATUS = FD_BASE, FD_CONTROL, FD_OUT, FD_ERR, FD_STDIN, FD_JOB, FD_OBJECT, FD_FIRST_UNUSED };

#define CONFINED_FDS (FD_FIRST_UNUSED - FD_STATUS)
#define JOB_DIRECTORY "/mnt/data"

/* Runs a step. A failure is reported to the keeper and ends the process. */
#define MUST(control, step, call)                                             \
	do {                                                                  \
		if ((call) < 0)                                               \
			report_failure(control, STEP_##step);                 \
	} while (0)

_Noreturn void report_failure(int control, int step);

/* Sets fixed resource limits, independent of jaild's parent. Called before the user namespace is entered. */
int confine_limits(void);

/* Locks the securebits: uid 0 gives a process no capabilities, whatever it executes. */
int secure_bits_lock(void);

/* In the user namespace: drops all capabilities, takes the job's ids, and verifies both with the kernel. */
void confine_identity(int control, pid_t pid);

/* Moves these descriptors to the numbers of the enumeration, in its order (-1: /dev/null), and closes all others. */
int confine_descriptors(const int wanted[CONFINED_FDS]);

#endif
