#include "keeper/request.h"

#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* The destination of the 'B' frames that must follow. */
struct sink {
	int fd; /* -1: none open */
	uint64_t left;
	struct input *input; /* NULL: standard input */
	struct hash hash;
};

struct receiver {
	struct request *request;
	const struct jail *jail;
	const struct options *options;
	struct sink sink;
};

/* Why a frame is refused; NULL text: it is accepted. */
struct refusal {
	enum error_code code;
	int error;
	const char *text;
};

static struct refusal refuse(const char *text)
{
	return (struct refusal){ERROR_PROTOCOL, 0, text};
}

static struct refusal accept_frame(void)
{
	return (struct refusal){0, 0, NULL};
}

/* For a failed write or creation: a full workspace is the client's error, anything else is internal. */
static struct refusal storage_refusal(void)
{
	if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
		return (struct refusal){ERROR_INPUTS, errno, "the inputs do not fit into the workspace"};
	if (errno == EEXIST || errno == ENOTDIR || errno == ELOOP)
		return (struct refusal){ERROR_PROTOCOL, errno, "two inputs need the same path"};
	return (struct refusal){ERROR_INTERNAL, errno, "cannot store an input"};
}

static struct refusal input_refusal(void)
{
	return errno == E2BIG ? refuse("too many inputs")
			      : (struct refusal){ERROR_INTERNAL, errno, "cannot note an input"};
}

static void finish_sink(struct sink *sink)
{
	if (sink->input) {
		sink->input->hash = hash_end(&sink->hash);
		close(sink->fd);
	}
	sink->fd = -1;
}

static struct refusal take_item(struct receiver *r, const struct frame *frame, char kind)
{
	struct request *request = r->request;
	struct iovec parts[] = {
		{&kind, 1}, {(void *)frame->payload, frame->size}, {(void *)"", 1}};
	uint32_t *count = kind == 'A' ? &request->argc : &request->envc;

	if (*count == (kind == 'A' ? ARGUMENTS_MAX : ENVIRONMENT_MAX) ||
	    request->job_size + frame->size + 2 > JOB_BYTES_MAX)
		return refuse("too many arguments or variables");
	if (memchr(frame->payload, '\0', frame->size))
		return refuse("NUL in an argument or variable");
	if (kind == 'A' && request->argc == 0 && (frame->size == 0 || frame->payload[0] != '/'))
		return refuse("the program's path is not absolute");
	if (kind == 'E' && (frame->size == 0 || frame->payload[0] == '=' ||
			    !memchr(frame->payload, '=', frame->size)))
		return refuse("a variable without a name or value");
	if (writev(r->jail->job, parts, 3) != (ssize_t)(frame->size + 2))
		return (struct refusal){ERROR_INTERNAL, errno, "cannot store an argument"};
	request->job_size += frame->size + 2;
	(*count)++;
	return accept_frame();
}

static struct refusal take_directory(struct receiver *r, const struct frame *frame)
{
	const struct stage stage = {r->jail->workspace, r->jail->uid, r->jail->gid};
	struct directory_header directory;

	if (!decode_directory(frame, &directory))
		return refuse("invalid directory");
	if (!inputs_add(&r->request->inputs, directory.input, true, directory.path, directory.path_size, 0))
		return input_refusal();
	return stage_directory(&stage, &directory) < 0 ? storage_refusal() : accept_frame();
}

static struct refusal take_link(struct receiver *r, const struct frame *frame)
{
	const struct stage stage = {r->jail->workspace, r->jail->uid, r->jail->gid};
	struct link_header link;

	if (!decode_link(frame, &link))
		return refuse("invalid symlink");
	if (!inputs_count_link(&r->request->inputs))
		return input_refusal();
	return stage_link(&stage, &link) < 0 ? storage_refusal() : accept_frame();
}

static struct refusal take_file(struct receiver *r, const struct frame *frame)
{
	const struct stage stage = {r->jail->workspace, r->jail->uid, r->jail->gid};
	struct sink *sink = &r->sink;
	struct file_header file;

	if (!decode_file(frame, &file))
		return refuse("invalid file");
	if (file.size > r->options->workspace_bytes) {
		errno = ENOSPC;
		return storage_refusal();
	}
	sink->input = inputs_add(&r->request->inputs, file.input, false, file.path, file.path_size, file.size);
	if (!sink->input)
		return input_refusal();
	sink->input->read_only = file.read_only;
	sink->fd = stage_file(&stage, &file);
	if (sink->fd < 0)
		return storage_refusal();
	sink->left = file.size;
	hash_begin(&sink->hash, &r->request->inputs.key);
	if (sink->left == 0)
		finish_sink(sink);
	return accept_frame();
}

static struct refusal take_stdin(struct receiver *r, const struct frame *frame)
{
	uint64_t size;

	if (r->request->has_stdin || !decode_u64(frame, &size) || size > STDIN_BYTES_MAX)
		return refuse("invalid standard input");
	r->request->has_stdin = true;
	r->sink = (struct sink){.fd = r->jail->stdin_data, .left = size};
	if (size == 0)
		finish_sink(&r->sink);
	return accept_frame();
}

static struct refusal take_bytes(struct receiver *r, const struct frame *frame)
{
	struct sink *sink = &r->sink;

	if (frame->size == 0 || frame->size > sink->left)
		return refuse("data beyond the announced size");
	if (write_all(sink->fd, frame->payload, frame->size) < 0)
		return storage_refusal();
	if (sink->input)
		hash_add(&sink->hash, frame->payload, frame->size);
	sink->left -= frame->size;
	if (sink->left == 0)
		finish_sink(sink);
	return accept_frame();
}

static struct refusal take_run(struct receiver *r, const struct frame *frame)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	struct request *request = r->request;

	if (frame->size != 0 || request->argc == 0 || !request->has_limits)
		return refuse("the job is not complete");
	if (!inputs_sort(&request->inputs))
		return refuse("two inputs have the same path");
	if (fcntl(r->jail->job, F_ADD_SEALS, seals) < 0 || fcntl(r->jail->stdin_data, F_ADD_SEALS, seals) < 0)
		return (struct refusal){ERROR_INTERNAL, errno, "cannot seal the job"};
	return accept_frame();
}

static struct refusal take_start(struct receiver *r, const struct frame *frame)
{
	struct request *request = r->request;

	if (frame->size != 0 || request->argc == 0 || !request->has_limits || request->has_stdin ||
	    request->inputs.count > 0 || request->inputs.links > 0 || request->is_listed_whole || request->is_live ||
	    r->jail->has_program)
		return refuse("this cannot be pre-started");
	request->is_prestart = true;
	return accept_frame();
}

static struct refusal take_whole_listing(struct receiver *r, const struct frame *frame)
{
	if (frame->size != 0 || r->request->is_listed_whole)
		return refuse("invalid request for a whole listing");
	r->request->is_listed_whole = true;
	return accept_frame();
}

static struct refusal take_live(struct receiver *r, const struct frame *frame)
{
	if (frame->size != 0 || r->request->is_live)
		return refuse("invalid request for output as it comes");
	r->request->is_live = true;
	return accept_frame();
}

static struct refusal take_limits(struct receiver *r, const struct frame *frame)
{
	struct limits *limits = &r->request->limits;

	if (r->request->has_limits || !decode_limits(frame, limits) || limits->stdout_cap > r->options->stream_bytes ||
	    limits->stderr_cap > r->options->stream_bytes)
		return refuse("invalid limits");
	r->request->has_limits = true;
	return accept_frame();
}

static struct refusal take_frame(struct receiver *r, const struct frame *frame)
{
	if ((frame->tag == 'B') != (r->sink.fd >= 0))
		return refuse("data expected or not expected");
	switch (frame->tag) {
	case 'A':
	case 'E':
		return take_item(r, frame, (char)frame->tag);
	case 'L':
		return take_limits(r, frame);
	case 'D':
		return take_directory(r, frame);
	case 'F':
		return take_file(r, frame);
	case 'Y':
		return take_link(r, frame);
	case 'V':
		return take_whole_listing(r, frame);
	case 'O':
		return take_live(r, frame);
	case 'I':
		return take_stdin(r, frame);
	case 'B':
		return take_bytes(r, frame);
	case 'R':
		return take_run(r, frame);
	case 'S':
		return take_start(r, frame);
	default:
		return refuse("unknown frame");
	}
}

bool request_receive(struct request *request, struct conn *conn, const struct jail *jail,
		     const struct options *options)
{
	uint64_t deadline = monotonic_us() + options->stage_ms * 1000;
	struct receiver receiver = {
		.request = request, .jail = jail, .options = options, .sink = {.fd = -1}};
	struct refusal refusal;
	struct frame frame;

	/* Entries of the list of inputs are set when they are added. */
	memset(request, 0, offsetof(struct request, inputs.item));
	if (hash_key_make(&request->inputs.key) < 0) {
		conn_send_error(conn, ERROR_INTERNAL, errno, "no random numbers");
		return false;
	}
	do {
		enum conn_status status = conn_receive(conn, &frame, deadline);

		if (status == CONN_GONE)
			return false;
		if (status == CONN_FRAME)
			refusal = take_frame(&receiver, &frame);
		else
			refusal = status == CONN_NONE ? (struct refusal){ERROR_SETUP, 0, REQUEST_LATE} : refuse("invalid frame");
		if (refusal.text) {
			conn_send_error(conn, refusal.code, refusal.error, refusal.text);
			log_line(LOG_WARN, (int)jail->slot, refusal.error, "job refused: %s",
				 refusal.text);
			return false;
		}
	} while (frame.tag != 'R' && frame.tag != 'S');
	return true;
}
