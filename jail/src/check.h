/*
 * `jaild --check`: tries each kernel feature that a jail needs by using it.
 * Prints "ok <feature>" or "fail <feature> <fix>"; false when one is missing.
 */
#ifndef JAIL_CHECK_H
#define JAIL_CHECK_H

#include "options.h"

#include <stdbool.h>

bool check_system(const struct options *options);

#endif
