/* How a program runs in an interpreter that is already there. */
#ifndef PYTHON_RUN_H
#define PYTHON_RUN_H

#include "python.h"

/*
 * Runs a program that nobody can notice. Afterwards this process owns the pages that every program writes to, and the
 * interpreter has made what it makes at its first use.
 */
void python_rehearse(void);

/* Runs a program as the main module and ends the process. `file` is open, and is closed when it has been read. */
_Noreturn void python_run(FILE *file, const char *path);

#endif
