#include "warm/warm.h"

#include "keeper/run.h"
#include "lib/channel.h"
#include "lib/step.h"
#include "lib/util.h"
#include "warm/zygote.h"
#include "warm/zygote_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A copy is ready at once. */
#define COPY_MS 10000
/* An interpreter loads its modules, which takes long on a slow machine. With a shorter timeout it would start again and again. */
#define PRESTART_MS 60000

static const struct zygote_queue *find_queue(const struct jail_config *config, const struct frame *name)
{
	const struct options *options = config->options;

	for (unsigned i = 0; i < options->zygotes; i++)
		if (strlen(options->zygote[i].name) == name->size &&
		    memcmp(options->zygote[i].name, name->payload, name->size) == 0)
			return &config->queues[i];
	return NULL;
}

static int send_request(const struct jail *jail, const struct zygote_queue *queue)
{
	const struct zygote_request request = {.slot = jail->slot};
	int given[GIVEN] = {[GIVEN_CONTROL] = jail->ends[END_CONTROL], jail->ends[END_OUT], jail->ends[END_ERR],
			    jail->ends[END_STDIN], jail->job};

	memcpy(given, jail->namespaces, sizeof(jail->namespaces));
	return zygote_request_send(queue->requests, &request, given);
}

/* Waits for the new process to report that it is confined, or the step that failed. */
static bool reports_ready(struct jail *jail, int control, int within_ms)
{
	struct pollfd wait[] = {{control, POLLIN, 0}, {jail->pidfd, POLLIN, 0}};
	struct message message = {0};

	if (poll(wait, COUNT(wait), within_ms) < 1 || channel_read(control, &message) != (ssize_t)sizeof(message)) {
		log_line(LOG_WARN, (int)jail->slot, 0, "the warm process was lost before it was ready");
		return false;
	}
	if (message.kind == MESSAGE_READY) {
		jail->warm_word = message.word;
		return true;
	}
	log_line(LOG_ERROR, (int)jail->slot, message.error, "cannot %s", step_text(message.step));
	return false;
}

enum warm_status warm_copy(struct jail *jail, const struct jail_config *config, const struct frame *name)
{
	const struct message adopt = {.kind = MESSAGE_ADOPT};
	const struct zygote_queue *queue = find_queue(config, name);

	if (!queue || !zygote_is_ready(queue))
		return WARM_NONE;
	/* Memory of the copy is charged to the run. */
	if (cgroup_count_memory(&jail->cgroup) < 0)
		return WARM_FAILED;
	if (send_request(jail, queue) < 0)
		return WARM_NONE;
	jail_close_ends(jail);
	if (!reports_ready(jail, jail->warm_control, COPY_MS) ||
	    send(jail->control, &adopt, sizeof(adopt), MSG_NOSIGNAL) < 0)
		return WARM_FAILED;
	close(jail->control);
	jail->control = jail->warm_control;
	jail->has_program = true;
	return WARM_READY;
}

enum warm_status warm_prestart(struct jail *jail, const struct request *request, const struct options *options)
{
	const struct message prestart = {
		.kind = MESSAGE_PRESTART, .argc = request->argc, .envc = request->envc, .job_size = request->job_size};

	if (run_set_limits(jail, &request->limits, options) < 0)
		return WARM_FAILED;
	jail_close_ends(jail);
	if (send(jail->control, &prestart, sizeof(prestart), MSG_NOSIGNAL) < 0 ||
	    !reports_ready(jail, jail->control, PRESTART_MS))
		return WARM_FAILED;
	/* The command has been executed, so its memory file is reused for the job. */
	if (ftruncate(jail->job, 0) < 0 || lseek(jail->job, 0, SEEK_SET) < 0)
		return WARM_FAILED;
	jail->has_program = true;
	return WARM_READY;
}

bool warm_wait_for_client(const struct jail *jail, const struct conn *conn)
{
	struct pollfd wait[] = {
		{conn->fd, POLLIN | POLLRDHUP, 0}, {jail->control, POLLIN, 0}, {jail->pidfd, POLLIN, 0}};

	while (poll(wait, COUNT(wait), -1) < 0)
		if (errno != EINTR)
			return false;
	return wait[1].revents == 0 && wait[2].revents == 0 && wait[0].revents == POLLIN;
}
