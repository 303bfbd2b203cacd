/*
 * The master's loop. It cleans a slot before each keeper and keeps as many keepers as jails may be ready or running. A
 * keeper whose run is paused does not count: when one reports a pause, another slot gets a keeper, as long as there are
 * slots. The loop returns after a termination signal, when no process of any run is left.
 */
#ifndef JAIL_SLOT_H
#define JAIL_SLOT_H

#include "keeper/jail.h"

/* Blocks signals until slots_run. Called before jaild makes anything that it must remove. */
void slots_block_signals(void);

/* In a child of the master. */
void slots_unblock_signals(void);

void slots_run(const struct jail_config *shared, int listener);

#endif
