#include "master/slot.h"

#include "files/tooldir.h"
#include "init/network.h"
#include "keeper/journal.h"
#include "keeper/keeper.h"
#include "keeper/pulse.h"
#include "lib/util.h"
#include "warm/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_MS 2	  /* between attempts to clean a slot */
#define UNPREPARED_MS 500 /* after a keeper could not make its jail */
#define STUCK_US 10000000

enum slot_state {
	SLOT_DIRTY, /* not cleaned since its last run */
	SLOT_STUCK, /* dirty for so long that it was logged */
	SLOT_CLEAN,
	SLOT_IN_USE, /* has a keeper */
};

struct slot {
	enum slot_state state;
	pid_t keeper;
	int network;	    /* namespace; -1: none */
	uint64_t not_before; /* earliest time of the next attempt */
	uint64_t dead_since;
	struct journal journal;
};

static sigset_t blocked;

/* Also called when a keeper was killed: it did not see its run end, so its namespace is not reused. */
static void close_network(struct slot *slot)
{
	if (slot->network >= 0)
		close(slot->network);
	slot->network = -1;
}

/* In a new keeper: closes the inherited files of other slots. */
static void close_others_files(const struct slot *slots, unsigned count, unsigned own)
{
	for (unsigned i = 0; i < count; i++) {
		if (i != own && slots[i].network >= 0)
			close(slots[i].network);
		if (slots[i].journal.fd >= 0)
			close(slots[i].journal.fd);
	}
}

static void fork_keeper(struct slot *slots, const struct jail_config *shared, unsigned number, int listener,
			int signals)
{
	struct jail_config config = *shared;
	struct slot *slot = &slots[number];
	pid_t master = getpid();

	if (slot->network < 0)
		slot->network = network_make(shared->userns);
	config.slot = number;
	config.network = slot->network;
	config.journal = journal_open(&slot->journal);
	slot->state = SLOT_IN_USE;
	slot->keeper = config.journal < 0 ? -1 : fork();
	if (slot->keeper == 0) {
		close(signals);
		slots_unblock_signals();
		zygotes_close_inherited();
		close_others_files(slots, config.options->slots, number);
		keeper_main(&config, listener, master);
	}
	if (slot->keeper < 0) {
		log_line(LOG_ERROR, (int)number, errno, "cannot fork a keeper");
		pulse_failed();
		journal_close(&slot->journal, (int)number);
		slot->state = SLOT_DIRTY;
		slot->not_before = monotonic_us() + UNPREPARED_MS * 1000;
	}
	if (config.journal >= 0)
		close(config.journal);
}

static void release_slot(struct slot *slot, unsigned number, int status)
{
	uint64_t now = monotonic_us();

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		close_network(slot);
	journal_close(&slot->journal, (int)number);
	*slot = (struct slot){
		.state = SLOT_DIRTY, .dead_since = now, .not_before = now, .network = slot->network, .journal.fd = -1};
	if (WIFEXITED(status) && WEXITSTATUS(status) == KEEPER_UNPREPARED) {
		slot->not_before += UNPREPARED_MS * 1000;
		pulse_failed();
	}
	if (WIFSIGNALED(status))
		log_line(LOG_WARN, (int)number, 0, "keeper killed by signal %d", WTERMSIG(status));
}

/* A child may also be the init of a jail, adopted when its keeper was killed. */
static void reap_children(struct slot *slots, unsigned count)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (zygotes_on_exit(pid))
			continue;
		for (unsigned i = 0; i < count; i++)
			if (slots[i].state == SLOT_IN_USE && slots[i].keeper == pid)
				release_slot(&slots[i], i, status);
	}
}

/* Counts the keepers that are ready or running, not those of paused runs and of ended ones that a client keeps. */
static unsigned count_active(const struct slot *slots, unsigned count)
{
	unsigned active = 0;

	for (unsigned i = 0; i < count; i++)
		active += slots[i].state == SLOT_IN_USE && !slots[i].journal.paused;
	return active;
}

/* Cleans up after the last run of a slot; false when it must be retried. */
static bool clean(struct slot *slot, unsigned number, uint64_t now)
{
	if (slot->state == SLOT_CLEAN)
		return true;
	if (cgroups_clean(number) && tooldir_clean(number)) {
		slot->state = SLOT_CLEAN;
		return true;
	}
	slot->not_before = now + (slot->state == SLOT_STUCK ? UNPREPARED_MS : RETRY_MS) * 1000;
	if (slot->state == SLOT_DIRTY && now - slot->dead_since > STUCK_US) {
		log_line(LOG_ERROR, (int)number, 0, "cannot clean up after a run: the slot is out of use");
		slot->state = SLOT_STUCK;
	}
	return false;
}

/* Cleans every slot that is due and starts keepers up to --ready. Returns the milliseconds until the next call; -1: none. */
static int refill(struct slot *slots, const struct jail_config *shared, int listener, int signals)
{
	unsigned active = count_active(slots, shared->options->slots);
	uint64_t now = monotonic_us();
	int next_ms = -1;

	for (unsigned i = 0; i < shared->options->slots; i++) {
		struct slot *slot = &slots[i];
		int left_ms;

		if (slot->state == SLOT_IN_USE || (slot->state == SLOT_CLEAN && active >= shared->options->ready))
			continue;
		if (slot->not_before <= now && clean(slot, i, now)) {
			if (active >= shared->options->ready)
				continue;
			fork_keeper(slots, shared, i, listener, signals);
			if (slot->state == SLOT_IN_USE) {
				active++;
				continue;
			}
		}
		left_ms = slot->not_before > now ? (int)((slot->not_before - now) / 1000) + 1 : 1;
		if (next_ms < 0 || left_ms < next_ms)
			next_ms = left_ms;
	}
	return next_ms;
}

static void end_all(struct slot *slots, unsigned count)
{
	uint64_t deadline = monotonic_us() + STUCK_US;
	pid_t pid;

	for (unsigned i = 0; i < count; i++)
		if (slots[i].state == SLOT_IN_USE)
			kill(slots[i].keeper, SIGKILL);
	/* Reaps keepers, then the inits of their jails, which the master adopts. */
	while (monotonic_us() < deadline) {
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		for (unsigned i = 0; i < count; i++)
			(void)cgroups_clean(i);
		sleep_ms(RETRY_MS);
	}
	log_line(LOG_ERROR, -1, 0, "some processes of runs cannot be killed");
}

void slots_block_signals(void)
{
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		fatal("cannot block signals");
}

void slots_unblock_signals(void)
{
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Waits for the events of the master and handles them; true after a termination signal. */
static bool wait_for_events(struct slot *slots, unsigned count, struct pollfd *wait, int signals, int next_ms)
{
	struct signalfd_siginfo info;
	bool ending = false;
	unsigned zygotes;

	wait[0] = (struct pollfd){signals, POLLIN, 0};
	for (unsigned i = 0; i < count; i++)
		wait[1 + i] = (struct pollfd){slots[i].journal.ended ? -1 : slots[i].journal.fd, POLLIN, 0};
	zygotes = zygotes_poll(wait + 1 + count);
	if (poll(wait, 1 + count + zygotes, next_ms) > 0) {
		for (unsigned i = 0; i < count; i++)
			if (wait[1 + i].revents & POLLIN)
				journal_read(&slots[i].journal, (int)i);
			else if (wait[1 + i].revents != 0)
				slots[i].journal.ended = true; /* a keeper closes its files before it can be reaped */
		zygotes_on_readable(wait + 1 + count, zygotes);
	}
	while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		ending = ending || info.ssi_signo != SIGCHLD;
	return ending;
}

void slots_run(const struct jail_config *config, int listener)
{
	unsigned count = config->options->slots;
	struct slot *slots = calloc(count, sizeof(*slots));
	struct pollfd *wait = calloc(1 + count + ZYGOTE_POLLS(ZYGOTES_MAX), sizeof(*wait));
	bool ending = false;
	int signals;

	signals = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	if (!slots || !wait || signals < 0)
		fatal("cannot start");
	for (unsigned i = 0; i < count; i++)
		slots[i].network = slots[i].journal.fd = -1;
	while (!ending) {
		int next_ms;

		pulse_beat();
		reap_children(slots, count);
		next_ms = sooner(refill(slots, config, listener, signals), zygotes_manage(config));
		ending = wait_for_events(slots, count, wait, signals, sooner(next_ms, PULSE_MS));
	}
	zygotes_end();
	end_all(slots, count);
	for (unsigned i = 0; i < count; i++) {
		close_network(&slots[i]);
		journal_close(&slots[i].journal, (int)i);
	}
	close(signals);
	free(wait);
	free(slots);
}
