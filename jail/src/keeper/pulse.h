/*
 * The health of the master, in memory that it shares with its keepers. Each keeper reports it to its client. So clients
 * notice a master that hangs or can no longer prepare jails, as long as prepared jails are left. Keepers only read the
 * memory.
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
/* A jail could not be prepared. Failures that follow each other soon count as one series. */
void pulse_failed(void);

/* In a keeper, before it makes processes: makes the memory read-only and keeps it out of them. -1 on failure. */
int pulse_keep(void);
/* Milliseconds since the last turn. */
uint32_t pulse_silent_ms(void);
/* Milliseconds since the current series of failures began; 0 when there is none. */
uint32_t pulse_failing_ms(void);

#endif
