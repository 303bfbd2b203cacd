/* The time of a run: pauses take none of it. */
#include "lib/clock.h"
#include "test.h"

void test_clock(void)
{
	struct run_clock clock = {.started = 1000, .deadline = 6000};

	CHECK(clock_wall_us(&clock, 3000) == 2000);
	clock_pause(&clock, 3000);
	CHECK(clock_wall_us(&clock, 3000) == 2000 && clock_wall_us(&clock, 90000) == 2000);
	clock_continue(&clock, 100000, 0); /* what was left: 3000 */
	CHECK(clock.deadline == 103000 && clock_wall_us(&clock, 100500) == 2500);
	clock_pause(&clock, 101000);
	clock_continue(&clock, 200000, 70000);
	CHECK(clock.deadline == 270000 && clock_wall_us(&clock, 200000) == 3000);
	/* A pause at the deadline leaves nothing, and does not underflow. */
	clock_pause(&clock, 270000);
	clock_continue(&clock, 300000, 0);
	CHECK(clock.deadline == 300000 && clock_wall_us(&clock, 300000) == 73000);
}
