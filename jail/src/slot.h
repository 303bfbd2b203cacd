/*
 * The master's loop: one keeper for every slot, a clean slot before every keeper.
 * Returns when a signal asked for the end and nothing of any run is left.
 */
#ifndef JAIL_SLOT_H
#define JAIL_SLOT_H

#include "jail.h"

void slots_run(const struct jail_config *shared, int listener);

#endif
