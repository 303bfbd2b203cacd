/*
 * The master's loop: a clean slot before every keeper, and as many keepers as jails
 * may be ready or running. A keeper whose run is paused is beyond that number: when
 * a keeper says so, another slot gets one, as long as there are slots.
 * Returns when a signal asked for the end and nothing of any run is left.
 */
#ifndef JAIL_SLOT_H
#define JAIL_SLOT_H

#include "keeper/jail.h"

/* Delays signals until slots_run. Called before anything is made that must be removed. */
void slots_block_signals(void);

/* In a child of the master. */
void slots_unblock_signals(void);

void slots_run(const struct jail_config *shared, int listener);

#endif
