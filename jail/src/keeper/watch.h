/*
 * The state of a run while its keeper watches it, and its transitions. Shared by run.c and command.c only.
 *
 *   starting --> executing <--> paused
 *       \____________|____________/
 *                    v
 *                  over
 */
#ifndef JAIL_WATCH_H
#define JAIL_WATCH_H

#include "keeper/run.h"
#include "lib/clock.h"

#define TICK_US 25000	/* between two looks at the counters */
#define OUTPUT_US 20000 /* between two transmissions of live output */

enum phase {
	PHASE_STARTING, /* until the exec */
	PHASE_EXECUTING,
	PHASE_PAUSED,
	PHASE_OVER, /* `ending` is the reason */
};

enum ending {
	ENDING_PROGRAM, /* it exited, or a signal killed it */
	ENDING_LIMIT,
	ENDING_CLIENT_LEFT,
	/* All others are errors. */
	ENDING_SETUP, /* a step of the set-up failed */
	ENDING_BAD_FRAME,
	ENDING_FREEZER,
	ENDING_COUNTERS,
	ENDING_INIT_LOST_EARLY, /* before the exec */
	ENDING_INIT_LOST,
};

/* What to expect on the connection. */
enum client_input {
	INPUT_DEFERRED, /* frames wait until the run is over */
	INPUT_AWAITED,
	INPUT_PENDING, /* frames may be in the buffer already */
};

struct watch {
	struct conn *conn;
	struct jail *jail;
	const struct request *request;
	struct capture *streams;
	struct result *result;
	enum phase phase;
	enum ending ending;
	enum client_input input;
	int failed_step, failed_error; /* of ENDING_SETUP; the error of any ending */
	bool warm; /* the program began without an exec */
	struct run_clock clock;
	uint64_t next_tick;
	uint64_t next_output; /* when output may be sent again, while the program runs */
	uint64_t locks_seen; /* CPU time of the run when its locks were counted */
};

/* Enters another phase. The keeper traps on a transition that is not in the picture above. */
void watch_enter(struct watch *watch, enum phase phase);

/* Ends the run. The first ending counts, later ones are ignored. `error` is an errno or 0. */
void watch_end(struct watch *watch, enum ending ending, int error);

/* Ends the run for a limit. */
void watch_kill(struct watch *watch, enum cause cause);

/* The error that the client receives; NULL when the run ended without one. */
const char *watch_error(const struct watch *watch, enum error_code *code);

/* Handles frames that the client sent, a few at a time; INPUT_PENDING when there may be more. */
void watch_receive_frames(struct watch *watch);

#endif
