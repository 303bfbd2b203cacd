/*
 * Modules that a program did not change need not be taken apart when it ends. Each module of the zygote has a proxy: an
 * object with the same names that is no module. At the end of a program the proxies replace the modules in sys.modules, so
 * that the interpreter takes apart what belongs to the program, and its finalizers still find what they import.
 *
 * A module whose names differ from what they were in the zygote stays in its place.
 */
#ifndef PYTHON_MODULE_PROXIES_H
#define PYTHON_MODULE_PROXIES_H

#include "python.h"

#include <stdbool.h>

/* In the zygote, when all is loaded. `of`: module name to proxy. False: out of memory. */
bool module_proxies_prepare(PyObject *of);

/* In the copy, after the program's last atexit handler. */
void module_proxies_install(void);

#endif
