#include "keeper/run.h"

#include "files/locks.h"
#include "keeper/report.h"
#include "keeper/watch.h"
#include "lib/channel.h"
#include "lib/step.h"
#include "lib/util.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXEC_US 20000000 /* longest time from MESSAGE_GO to the exec */
#define LOCKS_WAIT_US 100000

enum { WATCH_CLIENT, WATCH_CONTROL, WATCH_STATUS, WATCH_OUT, WATCH_ERR, WATCHED };

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

int run_memory(const struct jail *jail, uint64_t *bytes)
{
	uint64_t files = file_system_bytes(jail);
	struct cgroup_usage usage;

	if (cgroup_run_memory(&jail->cgroup, bytes) < 0 || cgroup_usage(&jail->cgroup, &usage) < 0)
		return -1;
	*bytes += files > usage.shared ? files - usage.shared : 0;
	return 0;
}

/*
 * Counting locks takes the kernel ten milliseconds or more, during which the wall time limit cannot be enforced. Near its
 * deadline a run's count is postponed, but not for long: a client may extend the deadline again and again.
 */
static void count_locks(struct watch *w, uint64_t cpu_us)
{
	uint64_t unseen = cpu_us - w->locks_seen;
	int too_many;

	if (unseen < LOCKS_LOOK_US ||
	    (unseen < 4 * LOCKS_LOOK_US && monotonic_us() + LOCKS_WAIT_US > w->clock.deadline))
		return;
	w->locks_seen = cpu_us;
	too_many = locks_are_too_many(w->jail->locks);
	if (too_many < 0)
		watch_end(w, ENDING_COUNTERS, errno);
	else if (too_many > 0)
		watch_kill(w, CAUSE_MEMORY);
}

/* A run whose counters cannot be read is ended, because its limits cannot be enforced. */
static void tick(struct watch *w)
{
	const struct cgroup *cgroup = &w->jail->cgroup;
	const struct limits *limits = &w->request->limits;
	uint64_t oom_kills, memory, cpu_us;
	struct cgroup_usage usage;

	reached_look_at_files(&w->result->reached, w->jail);
	if (!cgroup->enabled)
		return;
	if (cgroup_oom_kills(cgroup, &oom_kills) < 0 || cgroup_memory(cgroup, &memory) < 0 ||
	    (memory > limits->memory_bytes && cgroup_usage(cgroup, &usage) < 0) ||
	    cgroup_cpu_us(cgroup, &cpu_us) < 0)
		watch_end(w, ENDING_COUNTERS, errno);
	else if (oom_kills > 0 ||
		 (memory > limits->memory_bytes &&
		  memory_is_over(&usage, file_system_bytes(w->jail), limits->memory_bytes)))
		watch_kill(w, CAUSE_MEMORY);
	else if (limits->cpu_ms > 0 && cpu_us >= limits->cpu_ms * 1000)
		watch_kill(w, CAUSE_CPU);
	else
		count_locks(w, cpu_us);
}

/* The time limit counts from here, so no program gets less. The reported time counts from MESSAGE_GO. */
static void start_executing(struct watch *w)
{
	uint8_t warm = w->warm;

	watch_enter(w, PHASE_EXECUTING);
	w->input = INPUT_PENDING; /* the client may have sent frames with the job */
	w->clock.deadline = monotonic_us() + w->request->limits.wall_ms * 1000;
	conn_send(w->conn, 's', &warm, 1, NULL, 0);
	conn_flush(w->conn);
}

/* The program closes the channel when it begins. Before that, a message may report a warm start or a failed exec. */
static void read_control(struct watch *w)
{
	struct message message;
	ssize_t n;

	while ((n = channel_read(w->jail->control, &message)) == (ssize_t)sizeof(message) && message.kind == MESSAGE_WARM)
		w->warm = true;
	if (n < 0)
		return;
	if (n == (ssize_t)sizeof(message) && message.kind == MESSAGE_EXEC_FAILED) {
		w->result->exec_error = message.error;
	} else if (n == (ssize_t)sizeof(message)) {
		w->failed_step = message.step;
		watch_end(w, ENDING_SETUP, message.error);
		return;
	}
	start_executing(w);
}

static void lose_init(struct watch *w)
{
	watch_end(w, w->phase == PHASE_STARTING ? ENDING_INIT_LOST_EARLY : ENDING_INIT_LOST, 0);
}

/*
 * A failure to start was sent on the channel before the wait status. The end of the channel may arrive later than both,
 * because the zygote of a warm start holds a descriptor of it a moment longer.
 */
static void read_status(struct watch *w)
{
	int status;

	if (w->phase == PHASE_STARTING)
		read_control(w);
	if (w->phase == PHASE_OVER)
		return;
	if (read(w->jail->status, &status, sizeof(status)) != (ssize_t)sizeof(status)) {
		lose_init(w);
		return;
	}
	if (w->phase == PHASE_STARTING)
		start_executing(w);
	result_set_status(w->result, status);
	watch_end(w, ENDING_PROGRAM, 0);
}

static void read_streams(struct watch *w, const struct pollfd *polled)
{
	for (int i = 0; i < 2; i++) {
		if (polled[WATCH_OUT + i].revents == 0)
			continue;
		capture_read(&w->streams[i]);
		if (capture_is_over(&w->streams[i], w->request->limits.kill_factor))
			watch_kill(w, i == STREAM_OUT ? CAUSE_STDOUT : CAUSE_STDERR);
	}
}

static bool has_unsent_output(const struct watch *w)
{
	return w->request->is_live && w->phase == PHASE_EXECUTING &&
	       (w->streams[0].sent < w->streams[0].held || w->streams[1].sent < w->streams[1].held);
}

/* Output after a quiet time is sent at once. Output that follows soon is collected first, so that many small writes stay cheap. */
static void send_output_in_time(struct watch *w)
{
	uint64_t now = monotonic_us();

	if (!has_unsent_output(w) || now < w->next_output)
		return;
	report_output(w->conn, w->streams);
	w->next_output = now + OUTPUT_US;
}

/* The longest time to wait for events; NULL: without limit. */
static const struct timespec *next_timeout(const struct watch *w, struct timespec *timeout)
{
	uint64_t now = monotonic_us();
	uint64_t until = w->next_tick < w->clock.deadline ? w->next_tick : w->clock.deadline;
	uint64_t left;

	if (has_unsent_output(w) && w->conn->out_used == 0 && w->next_output < until)
		until = w->next_output;
	left = until > now ? until - now : 0;

	if (w->input == INPUT_PENDING)
		left = 0;
	else if (w->phase == PHASE_PAUSED)
		return NULL;
	timeout->tv_sec = (time_t)(left / 1000000);
	timeout->tv_nsec = (long)(left % 1000000) * 1000;
	return timeout;
}

static short client_events(const struct watch *w)
{
	short events = w->input == INPUT_DEFERRED ? POLLRDHUP : POLLRDHUP | POLLIN;

	return w->conn->out_used > 0 ? events | POLLOUT : events;
}

static void wait_for_events(struct watch *w)
{
	struct timespec timeout;
	struct pollfd polled[WATCHED] = {
		[WATCH_CLIENT] = {w->conn->fd, client_events(w), 0},
		[WATCH_CONTROL] = {w->phase == PHASE_STARTING ? w->jail->control : -1, POLLIN, 0},
		[WATCH_STATUS] = {w->jail->status, POLLIN, 0},
		[WATCH_OUT] = {w->streams[0].open ? w->streams[0].fd : -1, POLLIN, 0},
		[WATCH_ERR] = {w->streams[1].open ? w->streams[1].fd : -1, POLLIN, 0},
	};

	if (ppoll(polled, WATCHED, next_timeout(w, &timeout), NULL) < 0)
		return;
	if ((polled[WATCH_CLIENT].revents & ~(POLLIN | POLLOUT)) != 0) {
		watch_end(w, ENDING_CLIENT_LEFT, 0);
		return;
	}
	if (polled[WATCH_CONTROL].revents != 0)
		read_control(w);
	if (polled[WATCH_STATUS].revents != 0 && w->phase != PHASE_OVER)
		read_status(w);
	read_streams(w, polled);
	conn_offer(w->conn);
	send_output_in_time(w);
	if (w->phase != PHASE_OVER && ((polled[WATCH_CLIENT].revents & POLLIN) != 0 || w->input == INPUT_PENDING))
		watch_receive_frames(w);
}

static void watch(struct watch *w)
{
	while (w->phase != PHASE_OVER) {
		uint64_t now;

		wait_for_events(w);
		if (w->phase == PHASE_PAUSED)
			continue;
		now = monotonic_us();
		if (now >= w->clock.deadline) {
			if (w->phase == PHASE_STARTING)
				lose_init(w);
			else
				watch_kill(w, CAUSE_WALL);
		}
		if (w->phase != PHASE_OVER && now >= w->next_tick) {
			tick(w);
			w->next_tick = now + TICK_US;
		}
	}
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

int run_set_limits(struct jail *jail, const struct limits *limits, const struct options *options)
{
	if (proc_write_facts(jail->facts, limits->memory_bytes) < 0)
		return -1;
	/* One more for init. */
	return cgroup_begin(&jail->cgroup,
			    limits->memory_bytes + options->workspace_bytes + options->tmp_bytes + options->shm_bytes,
			    limits->pids + 1);
}

enum run_status run_program(struct conn *conn, struct jail *jail, const struct request *request,
			    const struct options *options, struct capture streams[2],
			    struct result *result)
{
	const struct limits *limits = &request->limits;
	struct watch w = {
		.conn = conn, .jail = jail, .request = request, .streams = streams, .result = result};
	enum error_code code;
	const char *error;
	uint64_t died;
	bool lost;

	*result = (struct result){0};
	if (!capture_begin(&streams[0], jail->stream[0], limits->stdout_cap) ||
	    !capture_begin(&streams[1], jail->stream[1], limits->stderr_cap) ||
	    run_set_limits(jail, limits, options) < 0)
		return fail(&w, ERROR_SETUP, errno, "cannot set the limits of the run");
	w.clock.started = monotonic_us();
	jail_close_ends(jail);
	if (!send_go(jail, request))
		return fail(&w, ERROR_SETUP, errno, "the jail does not answer");
	w.next_tick = w.clock.started + TICK_US;
	w.clock.deadline = w.clock.started + EXEC_US;
	watch(&w);
	if (!jail_end(jail))
		return fail(&w, ERROR_INTERNAL, 0, "the run cannot be killed");
	died = monotonic_us();
	reached_look_at_files(&result->reached, jail);
	reached_look_at_processes(&result->reached, jail, limits);
	/* Frees their memory at once; the harvest still needs the workspace. */
	close(jail->tmp);
	close(jail->shm);
	if (w.ending == ENDING_CLIENT_LEFT)
		return RUN_GONE;
	error = watch_error(&w, &code);
	lost = w.ending == ENDING_INIT_LOST || w.ending == ENDING_INIT_LOST_EARLY;
	if (error && !lost)
		return fail(&w, code, w.failed_error, error);
	result->wall_us = clock_wall_us(&w.clock, died);
	if (!read_final_counters(&w))
		return fail(&w, ERROR_INTERNAL, errno, "cannot read the counters of the run");
	/* The kernel's out-of-memory killer may have chosen init. */
	if (lost && result->oom_kills == 0)
		return fail(&w, code, 0, error);
	for (int i = 0; i < 2; i++) {
		capture_drain(&streams[i]);
		if (streams[i].error != 0)
			return fail(&w, ERROR_INTERNAL, streams[i].error, "cannot read the output of the run");
	}
	return RUN_ENDED;
}
