/* What a program leaves when it ends. */
#ifndef ZYGOTE_LEAVINGS_H
#define ZYGOTE_LEAVINGS_H

#include "python.h"

#include <stdbool.h>

/* In the zygote: programs may change what is found later. */
void leavings_prepare(void);

/*
 * Whether nothing that happens to the objects of an ended program could be noticed when the interpreter took itself apart, so
 * that it need not. `module`: the program's own. False when in doubt.
 */
bool leavings_are_silent(PyObject *module);

#endif
