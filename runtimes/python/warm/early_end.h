/*
 * The interpreter ends a program itself: threads, atexit, output, finalizers, modules. Once nothing that the program made
 * exists any more, the rest of its work only frees memory that goes with the process, and costs milliseconds of copied
 * pages. Nobody can tell whether it was done, so the process ends there: after the last atexit handler, or when all modules
 * have been cleared. Where anything of the program is left, the interpreter continues to its end.
 *
 * A program made what the collector knows and the zygote did not freeze. Objects whose type belongs to the zygote and has
 * neither a finalizer nor a call count as gone: ending them runs no code that anybody could notice, nothing can call them
 * at the end, and the collector also knows what they hold. Anything else may have an effect. Without the call of
 * early_end_prepare the interpreter finalizes each program in full.
 */
#ifndef PYTHON_EARLY_END_H
#define PYTHON_EARLY_END_H

#include "python.h"

#include <stdbool.h>

/* In the zygote, whose streams are a program's. `types`: a list of types without effect. False: something is missing. */
bool early_end_remember(PyObject *types);
/* The program has returned, without SystemExit; the process is to end with this status. */
void early_end_allow(int status);
/* Called after the program's last atexit handler. May end the process. */
void early_end_prepare(void);

#endif
