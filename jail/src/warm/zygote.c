#include "warm/zygote.h"

#include "lib/util.h"
#include "warm/zygote_start.h"
#include "warm/zygote_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define GENERATIONS 2 /* of one template, not counting released ones */
#define START_US 120000000
#define RETRY_US 1000000
#define RETRY_MAX_US 60000000
#define PRINTED 400

/* A generation passes through NONE to OLD in order, and can return to NONE from each. */
enum state {
	NONE,
	STARTING,
	READY, /* it serves requests */
	OLD,   /* it serves requests until its successor is ready */
	LATE,  /* it took too long to start and was killed; none is started before it is gone */
};

struct generation {
	enum state state;
	pid_t pid;
	int line, output;
	uint64_t born;
	char printed[PRINTED];
	size_t printed_size;
};

struct template {
	struct generation generation[GENERATIONS];
	int requests[2]; /* the keepers' end and the zygotes' end */
	int *ready;
	unsigned failures;
	uint64_t not_before;
};

static const struct options *options;
static struct template *templates;
static struct zygote_queue *queues;

bool zygote_is_ready(const struct zygote_queue *queue)
{
	return __atomic_load_n(queue->ready, __ATOMIC_RELAXED) > 0;
}

const struct zygote_queue *zygotes_open(const struct options *given)
{
	size_t size = given->zygotes * sizeof(int);
	int *board;

	options = given;
	if (given->zygotes == 0)
		return NULL;
	templates = calloc(given->zygotes, sizeof(*templates));
	queues = calloc(given->zygotes, sizeof(*queues));
	board = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!templates || !queues || board == MAP_FAILED)
		fatal("cannot start zygotes");
	for (unsigned i = 0; i < given->zygotes; i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, templates[i].requests) < 0)
			fatal("cannot start zygotes");
		templates[i].ready = &board[i];
		queues[i] = (struct zygote_queue){templates[i].requests[0], &board[i]};
	}
	return queues;
}

static bool serves(const struct generation *generation)
{
	return generation->state == READY || generation->state == OLD;
}

static void count_ready(struct template *template)
{
	int count = 0;

	for (unsigned i = 0; i < GENERATIONS; i++)
		count += serves(&template->generation[i]);
	__atomic_store_n(template->ready, count, __ATOMIC_RELAXED);
}

void zygotes_close_inherited(void)
{
	for (unsigned i = 0; i < options->zygotes; i++) {
		close(templates[i].requests[1]);
		for (unsigned j = 0; j < GENERATIONS; j++)
			if (templates[i].generation[j].state != NONE) {
				close(templates[i].generation[j].line);
				close(templates[i].generation[j].output);
			}
	}
}

/* Closes the line of a zygote. The process ends when it has served its current request. */
static void release(struct generation *generation)
{
	close(generation->line);
	close(generation->output);
	*generation = (struct generation){0};
}

static void start(struct template *template, struct generation *generation, const struct jail_config *config,
		  const struct zygote_options *own)
{
	int line[2] = {-1, -1}, output[2] = {-1, -1};
	pid_t pid = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, line) == 0 &&
	    pipe2(output, O_CLOEXEC) == 0 && fcntl(output[0], F_SETFL, O_NONBLOCK) == 0)
		pid = zygote_start(config, own, line, output[1], template->requests[1]);
	if (pid < 0)
		log_line(LOG_ERROR, -1, errno, "cannot start the zygote %s", own->name);
	close(line[1]);
	close(output[1]);
	template->not_before = monotonic_us() + RETRY_US;
	if (pid < 0) {
		close(line[0]);
		close(output[0]);
		return;
	}
	*generation = (struct generation){
		.state = STARTING, .pid = pid, .line = line[0], .output = output[0], .born = monotonic_us()};
}

static void promote(struct template *template, struct generation *next, const char *name)
{
	next->state = READY;
	template->failures = 0;
	for (unsigned i = 0; i < GENERATIONS; i++) {
		struct generation *other = &template->generation[i];

		if (other != next && serves(other))
			release(other);
	}
	count_ready(template);
	log_line(LOG_INFO, -1, 0, "the zygote %s is ready after %u ms", name,
		 (unsigned)((monotonic_us() - next->born) / 1000));
}

static uint64_t end_of(const struct generation *generation)
{
	if (generation->state == LATE)
		return UINT64_MAX;
	return generation->born + (generation->state == STARTING ? START_US : options->zygote_age_ms * 1000);
}

/* Whether a template has a zygote below its maximum age, or one that is starting or late. `when`: until when this holds. */
static bool is_served(const struct template *template, uint64_t now, uint64_t *when)
{
	*when = 0;
	for (unsigned i = 0; i < GENERATIONS; i++) {
		const struct generation *g = &template->generation[i];
		uint64_t end = end_of(g);

		if (g->state == NONE || g->state == OLD || (g->state == READY && now >= end))
			continue;
		*when = *when == 0 || end < *when ? end : *when;
	}
	return *when > 0;
}

static struct generation *find_free(struct template *template)
{
	for (unsigned i = 0; i < GENERATIONS; i++)
		if (template->generation[i].state == NONE)
			return &template->generation[i];
	return NULL;
}

static void kill_late(struct template *template, uint64_t now)
{
	for (unsigned i = 0; i < GENERATIONS; i++) {
		struct generation *g = &template->generation[i];

		if (g->state != STARTING || now < end_of(g))
			continue;
		(void)kill(g->pid, SIGKILL);
		g->state = LATE;
	}
}

/* Starts and ends generations of one template. Returns the time of the next call; UINT64_MAX: none. */
static uint64_t manage(struct template *template, const struct jail_config *config, const struct zygote_options *own)
{
	struct generation *place = find_free(template);
	uint64_t now = monotonic_us(), when;

	kill_late(template, now);
	if (is_served(template, now, &when))
		return when;
	if (template->not_before > now || !place)
		return template->not_before;
	start(template, place, config, own);
	return is_served(template, now, &when) ? when : template->not_before;
}

int zygotes_manage(const struct jail_config *config)
{
	uint64_t now = monotonic_us(), next = UINT64_MAX;

	for (unsigned i = 0; i < options->zygotes; i++) {
		uint64_t when = manage(&templates[i], config, &options->zygote[i]);

		if (when < next)
			next = when;
	}
	if (next == UINT64_MAX)
		return -1;
	return next > now ? (int)((next - now) / 1000) + 1 : 1;
}

unsigned zygotes_poll(struct pollfd *polls)
{
	unsigned count = 0;

	for (unsigned i = 0; i < options->zygotes; i++)
		for (unsigned j = 0; j < GENERATIONS; j++) {
			const struct generation *g = &templates[i].generation[j];

			polls[count++] = (struct pollfd){g->state != NONE ? g->line : -1, POLLIN, 0};
			polls[count++] = (struct pollfd){g->state != NONE ? g->output : -1, POLLIN, 0};
		}
	return count;
}

/* Keeps the last output, for the log. */
static void read_output(struct generation *generation)
{
	char text[PRINTED];
	ssize_t n = read(generation->output, text, sizeof(text) - 1);

	if (n <= 0)
		return;
	if (generation->printed_size + (size_t)n >= PRINTED)
		generation->printed_size = 0;
	memcpy(generation->printed + generation->printed_size, text, (size_t)n);
	generation->printed_size += (size_t)n;
	generation->printed[generation->printed_size] = '\0';
}

void zygotes_on_readable(const struct pollfd *polls, unsigned count)
{
	for (unsigned at = 0; at + 1 < count; at += 2) {
		unsigned i = at / 2 / GENERATIONS;
		struct generation *generation = &templates[i].generation[at / 2 % GENERATIONS];
		char what;

		if (generation->state == NONE)
			continue;
		if (polls[at + 1].revents & POLLIN)
			read_output(generation);
		if (polls[at].revents == 0 || recv(generation->line, &what, 1, MSG_DONTWAIT) != 1)
			continue;
		if (what == ZYGOTE_READY && generation->state == STARTING)
			promote(&templates[i], generation, options->zygote[i].name);
		else if (what == ZYGOTE_OLD && generation->state == READY)
			generation->state = OLD;
	}
}

bool zygotes_on_exit(pid_t pid)
{
	for (unsigned i = 0; i < options->zygotes; i++)
		for (unsigned j = 0; j < GENERATIONS; j++) {
			struct template *template = &templates[i];
			struct generation *g = &template->generation[j];
			uint64_t pause = RETRY_US << (template->failures < 6 ? template->failures : 6);

			if (g->state == NONE || g->pid != pid)
				continue;
			read_output(g);
			log_line(LOG_WARN, -1, 0, "the zygote %s died: %s", options->zygote[i].name, g->printed);
			template->not_before = serves(g) ? 0 : monotonic_us() + (pause < RETRY_MAX_US ? pause : RETRY_MAX_US);
			template->failures += !serves(g);
			release(g);
			count_ready(template);
			return true;
		}
	return false;
}

void zygotes_end(void)
{
	for (unsigned i = 0; i < options->zygotes; i++)
		for (unsigned j = 0; j < GENERATIONS; j++)
			if (templates[i].generation[j].state != NONE) {
				(void)kill(templates[i].generation[j].pid, SIGKILL);
				release(&templates[i].generation[j]);
			}
}
