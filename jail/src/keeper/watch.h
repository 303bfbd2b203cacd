/*
 * The state of a run that is being watched, and what its client may ask of it while
 * it lasts: shared by run.c and command.c only.
 */
#ifndef JAIL_WATCH_H
#define JAIL_WATCH_H

#include "keeper/run.h"
#include "lib/clock.h"

#define TICK_US 25000 /* between two looks at the counters */

struct watch {
	struct conn *conn;
	struct jail *jail;
	const struct request *request;
	struct capture *streams;
	struct result *result;
	bool executing, paused, over, warm;
	int failed_step, failed_error;
	struct run_clock clock;
	uint64_t next_tick;
	uint64_t locks_seen; /* CPU time of the run when its locks were counted */
	bool frames_left; /* of the client, received and not looked at */
	bool listening;	  /* to the client */
	bool client_gone, client_wrong, freeze_failed, counters_lost, init_lost;
};

/* Ends the run for a limit. */
void watch_kill(struct watch *watch, enum cause cause);

/* Ends the run because a counter, for the reason in errno, cannot be read. */
void watch_lose_counters(struct watch *watch);

/* Takes frames that the client sent, a few at a time: `frames_left` tells whether there may be more. */
void watch_take_frames(struct watch *watch);

#endif
