#include "run.h"

#include "report.h"
#include "step.h"
#include "tasks.h"
#include "util.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_US 25000
#define EXEC_US 20000000 /* longest time from the word to go to the exec */
#define ANSWER_US 1000000 /* longest wait for a client that asks and does not read, while its program runs */
#define FRAMES 16	  /* of the client, between two looks at the run */
#define WALL_MS_MAX 86400000

enum { WATCH_CLIENT, WATCH_CONTROL, WATCH_STATUS, WATCH_OUT, WATCH_ERR, WATCHED };

struct watch {
	struct conn *conn;
	struct jail *jail;
	const struct request *request;
	struct capture *streams;
	struct result *result;
	bool executing, paused, over, killed;
	int failed_step, failed_error;
	struct run_clock clock;
	uint64_t next_tick, ended;
	bool frames_left; /* of the client, received and not looked at */
	bool listening;	  /* to the client */
	bool client_gone, client_wrong, freeze_failed, init_lost;
	int notices;
};

bool memory_is_over(const struct cgroup_usage *usage, uint64_t file_system_bytes, uint64_t limit)
{
	uint64_t excused = usage->shared < file_system_bytes ? usage->shared : file_system_bytes;

	excused += usage->page_cache;
	return usage->memory > excused && usage->memory - excused > limit;
}

void result_set_status(struct result *result, int status)
{
	if (WIFSIGNALED(status)) {
		result->cause = CAUSE_SIGNALED;
		result->signal = WTERMSIG(status);
	} else {
		result->cause = CAUSE_EXITED;
		result->exit_code = WEXITSTATUS(status);
	}
}

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

static void kill_for(struct watch *w, enum cause cause)
{
	w->result->cause = cause;
	w->killed = w->over = true;
}

static uint64_t file_system_bytes(const struct jail *jail)
{
	const int mounts[] = {jail->workspace, jail->tmp, jail->shm};
	uint64_t total = 0;
	struct statfs st;

	for (size_t i = 0; i < COUNT(mounts); i++)
		if (fstatfs(mounts[i], &st) == 0)
			total += (uint64_t)(st.f_blocks - st.f_bfree) * (uint64_t)st.f_bsize;
	return total;
}

/* Looks at the counters; a counter that cannot be read ends the run as one over its limit. */
static void tick(struct watch *w)
{
	const struct cgroup *cgroup = &w->jail->cgroup;
	const struct limits *limits = &w->request->limits;
	struct cgroup_usage usage;
	uint64_t now;

	if (!cgroup->enabled)
		return;
	if (cgroup_oom_kills(cgroup, &now) < 0 || now > 0) {
		kill_for(w, CAUSE_MEMORY);
		return;
	}
	if (cgroup_memory(cgroup, &now) < 0 ||
	    (now > limits->memory_bytes &&
	     (cgroup_usage(cgroup, &usage) < 0 ||
	      memory_is_over(&usage, file_system_bytes(w->jail), limits->memory_bytes)))) {
		kill_for(w, CAUSE_MEMORY);
		return;
	}
	if (limits->cpu_ms > 0 && (cgroup_cpu_us(cgroup, &now) < 0 || now >= limits->cpu_ms * 1000))
		kill_for(w, CAUSE_CPU);
}

/* The limit counts from here, so that a program never has less; the report counts from the word to go. */
static void start_clock(struct watch *w)
{
	w->executing = true;
	w->listening = w->frames_left = true; /* frames may have come with the job */
	w->clock.deadline = monotonic_us() + w->request->limits.wall_ms * 1000;
	conn_send(w->conn, 's', NULL, 0, NULL, 0);
	conn_flush(w->conn);
}

/* The channel ends at exec; a message before that says why there was none. */
static void read_control(struct watch *w)
{
	struct message message;
	ssize_t n = recv(w->jail->control, &message, sizeof(message), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(message) && message.kind == MESSAGE_EXEC_FAILED) {
		w->result->exec_error = message.error;
	} else if (n == (ssize_t)sizeof(message)) {
		w->failed_step = message.step;
		w->failed_error = message.error;
		w->over = true;
		return;
	}
	start_clock(w);
}

static void read_status(struct watch *w)
{
	int status;

	if (read(w->jail->status, &status, sizeof(status)) == (ssize_t)sizeof(status))
		result_set_status(w->result, status);
	else
		w->init_lost = true;
	w->over = true;
}

static void read_streams(struct watch *w, const struct pollfd *polled)
{
	for (int i = 0; i < 2; i++) {
		if (polled[WATCH_OUT + i].revents == 0)
			continue;
		capture_read(&w->streams[i]);
		if (!w->over && capture_is_over(&w->streams[i], w->request->limits.kill_factor))
			kill_for(w, i == STREAM_OUT ? CAUSE_STDOUT : CAUSE_STDERR);
	}
}

static void answer_query(struct watch *w)
{
	uint8_t state = (uint8_t)tasks_look(w->jail->proc, &w->jail->cgroup);
	uint64_t idle_us = w->conn->idle_us;

	conn_send(w->conn, 'q', &state, 1, NULL, 0);
	w->conn->idle_us = ANSWER_US;
	if (!conn_flush(w->conn))
		w->client_gone = w->over = true;
	w->conn->idle_us = idle_us;
}

/* A paused run does not count among those that use the machine: the master may prepare one more jail. */
static void tell_master(const struct watch *w)
{
	const struct notice notice = {.keeper = getpid(), .paused = w->paused};

	(void)!write(w->notices, &notice, sizeof(notice));
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
			kill_for(w, i == STREAM_OUT ? CAUSE_STDOUT : CAUSE_STDERR);
	}
	/* The end that came first is what the client hears of. */
	if (w->over || has_ended(w->jail))
		return;
	pause.wall_us = clock_wall_us(&w->clock, monotonic_us());
	if (cgroup_cpu_us(&w->jail->cgroup, &pause.cpu_us) < 0 ||
	    cgroup_run_memory(&w->jail->cgroup, &pause.memory) < 0) {
		kill_for(w, CAUSE_MEMORY);
		return;
	}
	report_pause(w->conn, &pause, w->streams);
	if (!conn_flush(w->conn))
		w->client_gone = w->over = true;
	tell_master(w);
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
	tell_master(w);
}

/* Out of order, or not what its tag requires, is the end of the run. */
static void take_frame(struct watch *w, const struct frame *frame)
{
	uint64_t wall_ms;

	if (frame->tag == 'C' && w->paused && decode_u64(frame, &wall_ms) && wall_ms <= WALL_MS_MAX)
		continue_run(w, wall_ms);
	else if (frame->tag == 'Q' && !w->paused && frame->size == 0)
		answer_query(w);
	else if (frame->tag == 'P' && !w->paused && frame->size == 0)
		pause_run(w);
	else
		w->client_wrong = w->over = true;
}

static void take_frames(struct watch *w)
{
	struct frame frame;

	w->frames_left = true;
	for (int i = 0; i < FRAMES && !w->over && w->frames_left; i++) {
		enum conn_status status = conn_take(w->conn, &frame);

		w->frames_left = status == CONN_FRAME;
		if (status == CONN_GONE) {
			w->client_gone = w->over = true;
		} else if (status == CONN_INVALID || (status == CONN_FRAME && !memchr("CPQ", frame.tag, 3))) {
			/* For after the run, with all that follows: a fetch may be sent ahead. */
			if (status == CONN_FRAME)
				conn_return(w->conn, &frame);
			w->listening = w->frames_left = false;
		} else if (status == CONN_FRAME) {
			take_frame(w, &frame);
		}
	}
}

/* The time until something must be looked at, whatever happens; NULL: none. */
static const struct timespec *next_look(const struct watch *w, struct timespec *timeout)
{
	uint64_t now = monotonic_us();
	uint64_t until = w->next_tick < w->clock.deadline ? w->next_tick : w->clock.deadline;
	uint64_t left = until > now ? until - now : 0;

	if (w->frames_left)
		left = 0;
	else if (w->paused)
		return NULL;
	timeout->tv_sec = (time_t)(left / 1000000);
	timeout->tv_nsec = (long)(left % 1000000) * 1000;
	return timeout;
}

static void wait_for_events(struct watch *w)
{
	struct timespec timeout;
	struct pollfd polled[WATCHED] = {
		[WATCH_CLIENT] = {w->conn->fd, w->listening ? POLLRDHUP | POLLIN : POLLRDHUP, 0},
		[WATCH_CONTROL] = {w->executing ? -1 : w->jail->control, POLLIN, 0},
		[WATCH_STATUS] = {w->jail->status, POLLIN, 0},
		[WATCH_OUT] = {w->streams[0].open ? w->streams[0].fd : -1, POLLIN, 0},
		[WATCH_ERR] = {w->streams[1].open ? w->streams[1].fd : -1, POLLIN, 0},
	};

	if (ppoll(polled, WATCHED, next_look(w, &timeout), NULL) < 0)
		return;
	if ((polled[WATCH_CLIENT].revents & ~POLLIN) != 0) {
		w->client_gone = w->over = true;
		return;
	}
	if (polled[WATCH_CONTROL].revents != 0)
		read_control(w);
	if (polled[WATCH_STATUS].revents != 0 && !w->over) {
		/* The exec may have happened since the poll: its end of the channel came first. */
		if (!w->executing)
			read_control(w);
		read_status(w);
	}
	read_streams(w, polled);
	if (!w->over && (polled[WATCH_CLIENT].revents != 0 || w->frames_left))
		take_frames(w);
}

static void watch(struct watch *w)
{
	while (!w->over) {
		uint64_t now;

		wait_for_events(w);
		if (w->paused)
			continue;
		now = monotonic_us();
		if (!w->over && now >= w->clock.deadline) {
			if (!w->executing)
				w->init_lost = w->over = true;
			else
				kill_for(w, CAUSE_WALL);
		}
		if (!w->over && now >= w->next_tick) {
			tick(w);
			w->next_tick = now + TICK_US;
		}
	}
	w->ended = monotonic_us();
}

static bool send_go(const struct jail *jail, const struct request *request)
{
	const struct message go = {
		.kind = MESSAGE_GO, .argc = request->argc, .envc = request->envc,
		.job_size = request->job_size, .open_files = request->limits.open_files,
		.file_size_bytes = request->limits.file_size_bytes, .pids = request->limits.pids,
		.has_stdin = request->has_stdin,
	};

	return send(jail->control, &go, sizeof(go), MSG_NOSIGNAL) == (ssize_t)sizeof(go);
}

static enum run_status fail(struct watch *w, enum error_code code, int error, const char *text)
{
	conn_send_error(w->conn, code, error, text);
	log_line(LOG_ERROR, (int)w->jail->slot, error, "run failed: %s", text);
	return RUN_FAILED;
}

static bool read_final_counters(struct watch *w)
{
	struct cgroup_totals totals;

	if (cgroup_totals(&w->jail->cgroup, &totals) < 0)
		return false;
	w->result->cpu_us = totals.cpu_us;
	w->result->memory_peak = totals.memory_peak;
	w->result->oom_kills = totals.oom_kills;
	if (totals.oom_kills > 0)
		w->result->cause = CAUSE_MEMORY;
	return true;
}

enum run_status run_program(struct conn *conn, struct jail *jail, const struct request *request,
			    const struct options *options, struct capture streams[2],
			    struct result *result, int notices)
{
	const struct limits *limits = &request->limits;
	struct watch w = {
		.conn = conn, .jail = jail, .request = request, .streams = streams, .result = result,
		.notices = notices};

	*result = (struct result){0};
	if (!capture_begin(&streams[0], jail->stream[0], limits->stdout_cap) ||
	    !capture_begin(&streams[1], jail->stream[1], limits->stderr_cap) ||
	    proc_write_facts(jail->facts, limits->memory_bytes) < 0 ||
	    /* init is one more process than the program was promised */
	    cgroup_begin(&jail->cgroup,
			 limits->memory_bytes + options->workspace_bytes + options->tmp_bytes + options->shm_bytes,
			 limits->pids + 1) < 0)
		return fail(&w, ERROR_SETUP, errno, "cannot set the limits of the run");
	w.clock.started = monotonic_us();
	if (!send_go(jail, request))
		return fail(&w, ERROR_SETUP, errno, "the jail does not listen");
	w.next_tick = w.clock.started + TICK_US;
	w.clock.deadline = w.clock.started + EXEC_US;
	watch(&w);
	if (!jail_end(jail))
		return fail(&w, ERROR_INTERNAL, 0, "the run does not die");
	/* Their memory is free at once; the workspace stays for the harvest. */
	close(jail->tmp);
	close(jail->shm);
	if (w.client_gone)
		return RUN_GONE;
	if (w.failed_step != STEP_NONE)
		return fail(&w, ERROR_SETUP, w.failed_error, step_text(w.failed_step));
	if (w.client_wrong)
		return fail(&w, ERROR_PROTOCOL, 0, "invalid frame");
	if (w.freeze_failed)
		return fail(&w, ERROR_INTERNAL, w.failed_error, "the run cannot be stopped or continued");
	result->wall_us = clock_wall_us(&w.clock, w.ended);
	if (!read_final_counters(&w))
		return fail(&w, ERROR_INTERNAL, errno, "cannot read the counters of the run");
	if (w.init_lost && result->oom_kills == 0)
		return fail(&w, w.executing ? ERROR_INTERNAL : ERROR_SETUP, 0, "the jail's first process was lost");
	capture_drain(&streams[0]);
	capture_drain(&streams[1]);
	return RUN_ENDED;
}
