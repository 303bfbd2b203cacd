/*
 * The confinement itself: what every process goes through before it may become a
 * program, in the first process of a jail and in a copy of a zygote alike. Each
 * step reports its own failure on the control channel and ends the process.
 */
#ifndef JAIL_CONFINE_H
#define JAIL_CONFINE_H

#include "lib/step.h"

#include <sys/types.h>

/*
 * Descriptors of a confined process; 0, 1 and 2 are /dev/null until the program's are set. An interpreter
 * that is pre-started has them at higher numbers than its own: the object that it loads is built with another base.
 */
#define FD_BASE_USUAL 3
#define FD_BASE_PRESTARTED 500
#ifndef FD_BASE
#define FD_BASE FD_BASE_USUAL
#endif
enum { FD_STATUS = FD_BASE, FD_CONTROL, FD_OUT, FD_ERR, FD_STDIN, FD_JOB, FD_OBJECT, FD_FIRST_UNUSED };

#define CONFINED_FDS (FD_FIRST_UNUSED - FD_STATUS)
#define JOB_DIRECTORY "/mnt/data"

/* Does a step; when it fails, reports it to the keeper and ends the process. */
#define MUST(control, step, call)                                             \
	do {                                                                  \
		if ((call) < 0)                                               \
			report_failure(control, STEP_##step);                 \
	} while (0)

_Noreturn void report_failure(int control, int step);

/* Before the user namespace: fixed limits, independent of those of jaild's parent; no supplementary group. */
int confine_limits(void);

/* The uid 0 has no power of its own, whatever is executed. */
int secure_bits_lock(void);

/* In the user namespace: from all capabilities of it to none, read back from the kernel. */
void confine_identity(int control, pid_t pid);

/* Moves what is still needed to its place, in the order of the enumeration (-1: nothing), and closes all else. */
int confine_descriptors(const int wanted[CONFINED_FDS]);

#endif
