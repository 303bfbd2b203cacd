/*
 * The time of a run is the time that its program could run: a pause takes none of it.
 * All in microseconds of the monotonic clock.
 */
#ifndef JAIL_CLOCK_H
#define JAIL_CLOCK_H

#include <stdint.h>

struct run_clock {
	uint64_t started, deadline, paused_at, paused_us;
};

void clock_pause(struct run_clock *clock, uint64_t now);
/* A new limit from now on; 0: what was left. */
void clock_continue(struct run_clock *clock, uint64_t now, uint64_t limit_us);
uint64_t clock_wall_us(const struct run_clock *clock, uint64_t now);

#endif
