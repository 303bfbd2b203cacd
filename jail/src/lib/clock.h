/*
 * The wall time of a run, without its pauses, in microseconds of the monotonic clock.
 */
#ifndef JAIL_CLOCK_H
#define JAIL_CLOCK_H

#include <stdint.h>

struct run_clock {
	uint64_t started, deadline, paused_at, paused_us;
};

void clock_pause(struct run_clock *clock, uint64_t now);
/* Sets a new limit from now on; 0: the remaining time. */
void clock_continue(struct run_clock *clock, uint64_t now, uint64_t limit_us);
uint64_t clock_wall_us(const struct run_clock *clock, uint64_t now);

#endif
