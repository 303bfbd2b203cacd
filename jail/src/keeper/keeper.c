/*
 * Privileges and descriptors during a keeper's life:
 *
 *   fork     root of the host with what the master has, no client yet; opens its control files
 *   prepare  root of jaild's user namespace; makes the jail, the template and an empty network around it
 *   confine  keeps three capabilities, the system calls of keeper_policy.h, open
 *            control files of its slot, the workspace, the ends of the streams,
 *            the listening socket, the sockets of the zygotes and its pipe to the
 *            master (journal.h), and no other descriptor
 *   accept   only a keeper whose jail is complete takes a connection, so the
 *            kernel hands every connection to a ready slot
 *   serve    make the start warm if the client wants it; stage, run, pause,
 *            harvest, answer fetches; then exit
 *
 * The client's frames are parsed after confine. While files are staged, the only code of the run is a command that the
 * client pre-started (warm.h): a waiting interpreter, or any program that a hostile client names. While the run's files
 * are read, no process of the run exists.
 */
#include "keeper/keeper.h"

#include "files/harvest.h"
#include "init/capability.h"
#include "init/confine.h"
#include "keeper/conn.h"
#include "keeper/journal.h"
#include "keeper/pulse.h"
#include "keeper/report.h"
#include "keeper/request.h"
#include "keeper/run.h"
#include "lib/descriptors.h"
#include "lib/sys.h"
#include "lib/util.h"
#include "warm/warm.h"
#include "warm/zygote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define KEPT_US 1000000 /* without a fetch, until the master may prepare one more jail */

struct kept {
	int fds[64 + ZYGOTES_MAX];
	size_t count;
};

static void keep(struct kept *kept, const int *fds, size_t count)
{
	memcpy(kept->fds + kept->count, fds, count * sizeof(*fds));
	kept->count += count;
}

/* Closes all descriptors except those that a confined keeper needs. */
static int close_others(const struct jail *j, const struct jail_config *config, int listener)
{
	const struct cgroup *c = &j->cgroup;
	const int own[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, listener};
	const int of_jail[] = {j->pidfd, j->control, j->warm_control, j->status, j->job, j->stdin_data,
			       j->workspace, j->tmp, j->shm, j->proc, j->locks, j->mounts};
	const int of_group[] = {c->pids, c->kill, c->usage, c->stat, c->peak, c->oom, c->cpu, c->pids_limit, c->pids_events,
				c->memory_limit, c->swap_limit, c->freezer.control, c->freezer.state};
	struct kept kept = {0};

	keep(&kept, own, COUNT(own));
	keep(&kept, of_jail, COUNT(of_jail));
	keep(&kept, j->ends, COUNT(j->ends));
	keep(&kept, j->stream, COUNT(j->stream));
	keep(&kept, j->facts, COUNT(j->facts));
	keep(&kept, j->namespaces, COUNT(j->namespaces));
	if (c->enabled)
		keep(&kept, of_group, COUNT(of_group));
	for (unsigned i = 0; i < config->options->zygotes; i++)
		keep(&kept, &config->queues[i].requests, 1);
	return descriptors_keep(kept.fds, kept.count);
}

static int confine(const struct seccomp_program *policy, pid_t master)
{
	if (bounding_set_keep(0) < 0 || secure_bits_lock() < 0 || capabilities_keep(FILE_CAPABILITIES) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -1;
	/* Changes of credentials have cleared the parent death signal. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != master)
		return -1;
	return seccomp_load(policy);
}

/* Waits for a client; -1 when the jail dies first. */
static int accept_client(const struct jail *jail, int listener)
{
	struct epoll_event wanted = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = listener}, found;
	int epoll = epoll_create1(EPOLL_CLOEXEC), client;

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &wanted) < 0)
		return -1;
	wanted = (struct epoll_event){.events = EPOLLIN, .data.fd = jail->pidfd};
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, jail->pidfd, &wanted) < 0)
		return -1;
	for (;;) {
		int n = epoll_wait(epoll, &found, 1, -1);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n == 1 && found.data.fd == jail->pidfd)
			return -1;
		client = n == 1 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
		if (client >= 0)
			break;
	}
	close(epoll);
	close(listener);
	return client;
}

/*
 * A client that fetches nothing for a moment may keep the jail for long. The jail is then reported as inactive, like that
 * of a paused run.
 */
static enum conn_status receive_fetch(struct conn *conn, struct frame *frame, const struct options *options)
{
	uint64_t now = monotonic_us(), deadline = now + options->fetch_ms * 1000;
	enum conn_status status = conn_receive(conn, frame, now + KEPT_US < deadline ? now + KEPT_US : deadline);

	if (status != CONN_NONE)
		return status;
	journal_send_paused(true);
	status = conn_receive(conn, frame, deadline);
	journal_send_paused(false);
	return status;
}

static void answer_fetches(struct conn *conn, const struct jail *jail, const struct listing *listing,
			   const struct options *options)
{
	struct frame frame;
	uint32_t number;

	while (conn_flush(conn)) {
		enum conn_status status = receive_fetch(conn, &frame, options);

		if (status == CONN_GONE || status == CONN_NONE)
			return;
		/* The client sent this command before it received the end of the run, which answers it. */
		if (status == CONN_FRAME && frame.size == 0 && memchr("PQT", frame.tag, 3))
			continue;
		if (status == CONN_INVALID || frame.tag != 'G' || !decode_u32(&frame, &number)) {
			conn_send_error(conn, ERROR_PROTOCOL, 0, "invalid frame");
			return;
		}
		harvest_send_file(jail->workspace, listing, number, conn);
	}
}

static bool send_warm_answer(struct conn *conn, const struct jail *jail, bool is_warm)
{
	uint8_t answer[5] = {is_warm};

	put_u32(answer + 1, jail->warm_word);
	conn_send(conn, 'w', answer, sizeof(answer), NULL, 0);
	return conn_flush(conn);
}

/* A client may first request a copy of a zygote and send the job at any later time. False when no job can follow. */
static bool prepare_start(struct jail *jail, struct conn *conn, const struct jail_config *config)
{
	struct frame frame;
	enum conn_status status = conn_receive(conn, &frame, monotonic_us() + config->options->stage_ms * 1000);
	enum warm_status warm;

	if (status != CONN_FRAME || frame.tag != 'W') {
		if (status == CONN_FRAME)
			conn_return(conn, &frame);
		if (status == CONN_NONE)
			conn_send_error(conn, ERROR_SETUP, 0, REQUEST_LATE);
		return status == CONN_FRAME || status == CONN_INVALID;
	}
	warm = warm_copy(jail, config, &frame);
	if (warm == WARM_FAILED) {
		conn_send_error(conn, ERROR_SETUP, 0, "the warm start failed");
		return false;
	}
	return send_warm_answer(conn, jail, warm == WARM_READY) && warm_wait_for_client(jail, conn);
}

/* Receives the job, and before it an optional command to pre-start. */
static bool receive_job(struct request *request, struct conn *conn, struct jail *jail, const struct options *options)
{
	while (request_receive(request, conn, jail, options)) {
		if (!request->is_prestart)
			return true;
		if (warm_prestart(jail, request, options) != WARM_READY) {
			conn_send_error(conn, ERROR_SETUP, 0, "the pre-start failed");
			return false;
		}
		if (!send_warm_answer(conn, jail, true) || !warm_wait_for_client(jail, conn))
			return false;
	}
	return false;
}

static void serve(struct jail *jail, int client, const struct jail_config *config)
{
	static struct request request;
	static struct listing listing;
	const struct options *options = config->options;
	struct capture streams[2];
	struct result result;
	struct conn conn;
	uint8_t hello[16], *end;

	conn_begin(&conn, client, options->fetch_ms * 1000);
	end = put_u32(put_u32(hello, PROTOCOL_VERSION), config->slot);
	put_u32(put_u32(end, pulse_silent_ms()), pulse_failing_ms());
	conn_send(&conn, 'h', hello, sizeof(hello), NULL, 0);
	if (!conn_flush(&conn) || !prepare_start(jail, &conn, config) || !receive_job(&request, &conn, jail, options))
		return;
	if (run_program(&conn, jail, &request, options, streams, &result) != RUN_ENDED)
		return;
	report_end(&conn, &result, streams);
	harvest(jail->workspace, &request.inputs, request.is_listed_whole, &listing);
	listing_send(&listing, &conn);
	if (!conn_flush(&conn))
		return;
	close(jail->mounts);
	answer_fetches(&conn, jail, &listing, options);
}

_Noreturn void keeper_main(const struct jail_config *config, int listener, pid_t master)
{
	static struct jail jail;
	int client;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != master)
		_exit(1);
	signal(SIGPIPE, SIG_IGN);
	if (pulse_keep() < 0 || journal_begin(config->journal) < 0 || jail_prepare(&jail, config) < 0)
		_exit(KEEPER_UNPREPARED);
	if (close_others(&jail, config, listener) < 0 || confine(config->keeper_policy, master) < 0) {
		log_line(LOG_ERROR, (int)config->slot, errno, "cannot confine the keeper");
		_exit(KEEPER_UNPREPARED);
	}
	client = accept_client(&jail, listener);
	if (client < 0)
		_exit(1);
	serve(&jail, client, config);
	_exit(jail_end(&jail) ? 0 : 1);
}
