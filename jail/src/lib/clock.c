#include "lib/clock.h"

void clock_pause(struct run_clock *clock, uint64_t now)
{
	clock->paused_at = now;
}

void clock_continue(struct run_clock *clock, uint64_t now, uint64_t limit_us)
{
	clock->deadline = limit_us > 0 ? now + limit_us : clock->deadline + (now - clock->paused_at);
	clock->paused_us += now - clock->paused_at;
	clock->paused_at = 0;
}

uint64_t clock_wall_us(const struct run_clock *clock, uint64_t now)
{
	uint64_t end = clock->paused_at > 0 ? clock->paused_at : now;

	return end - clock->started - clock->paused_us;
}
