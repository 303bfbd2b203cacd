/*
 * What a client may ask of its running program: what it does (Q), to stand still (P),
 * to stand still if nothing but something else can move it (T), to go on (C). A frame
 * of another kind is left for after the run.
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

#define ANSWER_US 1000000 /* longest wait for a client that asks and does not read, while its program runs */
#define FRAMES 16	  /* of the client, between two looks at the run */
#define WALL_MS_MAX 86400000

static void answer_query(struct watch *w, enum tasks_state state)
{
	uint8_t answer = (uint8_t)state;
	uint64_t idle_us = w->conn->idle_us;

	conn_send(w->conn, 'q', &answer, 1, NULL, 0);
	w->conn->idle_us = ANSWER_US;
	if (!conn_flush(w->conn))
		w->client_gone = w->over = true;
	w->conn->idle_us = idle_us;
}

static bool has_ended(const struct jail *jail)
{
	struct pollfd status = {.fd = jail->status, .events = POLLIN};

	return poll(&status, 1, 0) != 0;
}

static void pause_run(struct watch *w)
{
	struct pause pause = {0};

	clock_pause(&w->clock, monotonic_us());
	if (jail_freeze(w->jail) < 0) {
		w->failed_error = errno;
		w->freeze_failed = w->over = true;
		return;
	}
	w->paused = true;
	for (int i = 0; i < 2; i++) {
		capture_drain(&w->streams[i]);
		if (capture_is_over(&w->streams[i], w->request->limits.kill_factor))
			watch_kill(w, i == STREAM_OUT ? CAUSE_STDOUT : CAUSE_STDERR);
	}
	/* The end that came first is what the client hears of. */
	if (w->over || has_ended(w->jail))
		return;
	pause.wall_us = clock_wall_us(&w->clock, monotonic_us());
	if (cgroup_cpu_us(&w->jail->cgroup, &pause.cpu_us) < 0 ||
	    cgroup_run_memory(&w->jail->cgroup, &pause.memory) < 0) {
		watch_lose_counters(w);
		return;
	}
	report_pause(w->conn, &pause, w->streams);
	if (!conn_flush(w->conn))
		w->client_gone = w->over = true;
	journal_tell_paused(w->paused);
}

/* Answers with the pause, or with what the program does instead. */
static void pause_blocked_run(struct watch *w)
{
	enum tasks_state state = tasks_look(w->jail->proc, &w->jail->cgroup);

	if (state == TASKS_BLOCKED)
		pause_run(w);
	else
		answer_query(w, state);
}

static void continue_run(struct watch *w, uint64_t wall_ms)
{
	clock_continue(&w->clock, monotonic_us(), wall_ms * 1000);
	w->paused = false;
	w->next_tick = monotonic_us() + TICK_US;
	if (jail_thaw(w->jail) < 0) {
		w->failed_error = errno;
		w->freeze_failed = w->over = true;
	}
	journal_tell_paused(w->paused);
}

/* Out of order, or not what its tag requires, is the end of the run. */
static void take_frame(struct watch *w, const struct frame *frame)
{
	uint64_t wall_ms;

	if (frame->tag == 'C' && w->paused && decode_u64(frame, &wall_ms) && wall_ms <= WALL_MS_MAX)
		continue_run(w, wall_ms);
	else if (frame->tag == 'Q' && !w->paused && frame->size == 0)
		answer_query(w, tasks_look(w->jail->proc, &w->jail->cgroup));
	else if (frame->tag == 'P' && !w->paused && frame->size == 0)
		pause_run(w);
	else if (frame->tag == 'T' && !w->paused && frame->size == 0)
		pause_blocked_run(w);
	else
		w->client_wrong = w->over = true;
}

void watch_take_frames(struct watch *w)
{
	struct frame frame;

	w->frames_left = true;
	for (int i = 0; i < FRAMES && !w->over && w->frames_left; i++) {
		enum conn_status status = conn_take(w->conn, &frame);

		w->frames_left = status == CONN_FRAME;
		if (status == CONN_GONE) {
			w->client_gone = w->over = true;
		} else if (status == CONN_INVALID || (status == CONN_FRAME && !memchr("CPQT", frame.tag, 4))) {
			/* For after the run, with all that follows: a fetch may be sent ahead. */
			if (status == CONN_FRAME)
				conn_return(w->conn, &frame);
			w->listening = w->frames_left = false;
		} else if (status == CONN_FRAME) {
			take_frame(w, &frame);
		}
	}
}
