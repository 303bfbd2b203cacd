/* What the interpreter calls when a program ends. */
#ifndef ZYGOTE_FAREWELLS_H
#define ZYGOTE_FAREWELLS_H

#include "python.h"

#include <stdbool.h>

/*
 * In the zygote. `only_logging`: of what it has loaded, nothing wants to be called at the end but logging, which closes
 * the handlers that programs made.
 */
void farewells_prepare(bool only_logging);

/*
 * Whether there is nobody to wait for and nothing to call that the program has asked for: no other thread, no function, nothing
 * that watches what is called. False when in doubt.
 */
bool farewells_are_idle(void);

#endif
