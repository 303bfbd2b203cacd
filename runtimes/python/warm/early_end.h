/*
 * The interpreter ends a program itself: threads, atexit, output, finalizers, modules. As soon as nothing that the program made
 * exists any more, what the interpreter has still to do gives back memory that goes with the process, and costs milliseconds
 * of copied pages. Nobody can tell whether it was done, so the process ends there: after the last function of atexit, or when
 * all modules have been cleared. Where anything of the program is left, the interpreter goes on to its end.
 *
 * What a program made is what the collector knows and the zygote did not freeze. Objects whose type is one of the zygote's and has neither
 * a finalizer nor a call are as good as gone: ending them runs no code that anybody could notice, nothing can call them in the end, and
 * what they hold is known to the collector, too. Anything else may have an effect. Without the call of early_end_prepare each program
 * takes the interpreter's whole way.
 */
#ifndef PYTHON_EARLY_END_H
#define PYTHON_EARLY_END_H

#include "python.h"

#include <stdbool.h>

/* In the zygote, whose streams are a program's. `types`: a list of types without effect. False: something is missing. */
bool early_end_remember(PyObject *types);
/* The program has returned, without SystemExit; the process is to end with this status. */
void early_end_allow(int status);
/* After all functions that the program wants to be called at its end. May not come back. */
void early_end_prepare(void);

#endif
