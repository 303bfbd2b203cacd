/*
 * The process that becomes the program. Forked from init when the jail is made,
 * with everything done that does not depend on the job; it then waits for
 * MESSAGE_GO. The job lies in a memory file: for each item 'A' (argument) or 'E'
 * (environment), its bytes, NUL.
 */
#ifndef JAIL_PROGRAM_H
#define JAIL_PROGRAM_H

/* Descriptors of init and of the waiting process; 0, 1 and 2 are /dev/null until the program's are set. */
enum { FD_STATUS = 3, FD_CONTROL, FD_OUT, FD_ERR, FD_STDIN, FD_JOB, FD_FIRST_UNUSED };

_Noreturn void program_main(void);

/* Tells the keeper that a step failed, and dies. */
_Noreturn void report_failure(int control, int step);

#endif
