/*
 * How the master does, in memory that it shares with its keepers: each tells its client. A master that stands still, or that cannot
 * prepare jails any more, shows as long as prepared jails are left. Keepers only read.
 */
#ifndef JAIL_PULSE_H
#define JAIL_PULSE_H

#include <stdint.h>

/* The master's loop turns at least this often. */
#define PULSE_MS 1000

/* In the master, once. */
void pulse_open(void);
/* At each turn of its loop. */
void pulse_beat(void);
/* No jail could be prepared. Failures that follow each other soon are one row. */
void pulse_failed(void);

/* In a keeper before it makes processes: these do not have the memory, and it only reads it. -1: it failed. */
int pulse_keep(void);
/* Milliseconds since the last turn. */
uint32_t pulse_silent_ms(void);
/* Milliseconds since the row of failures began that has not ended; 0: there is none. */
uint32_t pulse_failing_ms(void);

#endif
