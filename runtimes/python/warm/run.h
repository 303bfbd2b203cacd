/* How a program runs in an interpreter that is already there. */
#ifndef PYTHON_RUN_H
#define PYTHON_RUN_H

#include "python.h"

/*
 * Runs a program to its end that nobody can notice, so that the pages that each one writes to are this process's own already and
 * what the interpreter makes at its first use is made.
 */
void python_rehearse(void);

/* Runs a program as the main module and ends the process. `file` is open, and is closed when it has been read. */
_Noreturn void python_run(FILE *file, const char *path);

#endif
