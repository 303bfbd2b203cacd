/*
 * Commands of a client during a run: query the state (Q), pause (P), pause if the program only waits for tool results (T),
 * continue (C). Frames of other kinds are deferred until the run is over.
 */
#include "cgroup/tasks.h"
#include "keeper/journal.h"
#include "keeper/report.h"
#include "keeper/watch.h"
#include "lib/util.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_US 1000000 /* longest wait for a client that does not read its answer while its program runs */
#define FRAMES 16	  /* handled between two checks of the run */
#define WALL_MS_MAX 86400000

static void answer_query(struct watch *w, enum tasks_state state)
{
	uint8_t answer = (uint8_t)state;
	uint64_t idle_us = w->conn->idle_us;

	conn_send(w->conn, 'q', &answer, 1, NULL, 0);
	w->conn->idle_us = ANSWER_US;
	if (!conn_flush(w->conn))
		watch_end(w, ENDING_CLIENT_LEFT, 0);
	w->conn->idle_us = idle_us;
}

static bool has_ended(const struct jail *jail)
{
	struct pollfd status = {.fd = jail->status, .events = POLLIN};

	return poll(&status, 1, 0) != 0;
}

static void continue_run(struct watch *w, uint64_t wall_ms)
{
	clock_continue(&w->clock, monotonic_us(), wall_ms * 1000);
	watch_enter(w, PHASE_EXECUTING);
	w->next_tick = monotonic_us() + TICK_US;
	if (jail_thaw(w->jail) < 0)
		watch_end(w, ENDING_FREEZER, errno);
	journal_send_paused(false);
}

static void pause_run(struct watch *w)
{
	struct pause pause = {0};

	clock_pause(&w->clock, monotonic_us());
	if (jail_freeze(w->jail) < 0) {
		watch_end(w, ENDING_FREEZER, errno);
		return;
	}
	watch_enter(w, PHASE_PAUSED);
	for (int i = 0; i < 2; i++) {
		capture_drain(&w->streams[i]);
		if (capture_is_over(&w->streams[i], w->request->limits.kill_factor))
			watch_kill(w, i == STREAM_OUT ? CAUSE_STDOUT : CAUSE_STDERR);
	}
	/* The client receives the end instead of the pause when the end came first. */
	if (w->phase == PHASE_OVER || has_ended(w->jail))
		return;
	/* The program has ended, but init was frozen before it could report that: let init go on. */
	if (!tasks_live(w->jail->proc, FIRST_PROGRAM)) {
		continue_run(w, 0);
		return;
	}
	pause.wall_us = clock_wall_us(&w->clock, monotonic_us());
	if (cgroup_cpu_us(&w->jail->cgroup, &pause.cpu_us) < 0 ||
	    run_memory(w->jail, &pause.memory) < 0) {
		watch_end(w, ENDING_COUNTERS, errno);
		return;
	}
	report_pause(w->conn, &pause, w->streams);
	if (!conn_flush(w->conn))
		watch_end(w, ENDING_CLIENT_LEFT, 0);
	journal_send_paused(true);
}

/* Pauses a blocked run; otherwise answers with its state. */
static void pause_blocked_run(struct watch *w)
{
	enum tasks_state state = tasks_look(w->jail->proc, &w->jail->cgroup);

	if (state == TASKS_BLOCKED)
		pause_run(w);
	else
		answer_query(w, state);
}

/* A frame that is malformed or does not fit the phase ends the run. */
static void handle_frame(struct watch *w, const struct frame *frame)
{
	bool paused = w->phase == PHASE_PAUSED;
	uint64_t wall_ms;

	if (frame->tag == 'C' && paused && decode_u64(frame, &wall_ms) && wall_ms <= WALL_MS_MAX)
		continue_run(w, wall_ms);
	else if (frame->tag == 'Q' && !paused && frame->size == 0)
		answer_query(w, tasks_look(w->jail->proc, &w->jail->cgroup));
	else if (frame->tag == 'P' && !paused && frame->size == 0)
		pause_run(w);
	else if (frame->tag == 'T' && !paused && frame->size == 0)
		pause_blocked_run(w);
	else
		watch_end(w, ENDING_BAD_FRAME, 0);
}

void watch_receive_frames(struct watch *w)
{
	struct frame frame;

	w->input = INPUT_PENDING;
	for (int i = 0; i < FRAMES && w->phase != PHASE_OVER && w->input == INPUT_PENDING; i++) {
		enum conn_status status = conn_take(w->conn, &frame);

		if (status == CONN_NONE) {
			w->input = INPUT_AWAITED;
		} else if (status == CONN_GONE) {
			watch_end(w, ENDING_CLIENT_LEFT, 0);
		} else if (status == CONN_INVALID || !memchr("CPQT", frame.tag, 4)) {
			/* This frame and all later ones are deferred: a client may send its first fetch before the run is over. */
			if (status == CONN_FRAME)
				conn_return(w->conn, &frame);
			w->input = INPUT_DEFERRED;
		} else {
			handle_frame(w, &frame);
		}
	}
}
