#include "keeper/conn.h"

#include "lib/util.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define OUT_SIZE 65536
#define LINGER_US 2000000

static uint8_t in_buffer[FRAME_HEADER + FRAME_MAX];
static uint8_t out_buffer[OUT_SIZE];

void conn_begin(struct conn *conn, int fd, uint64_t idle_us)
{
	*conn = (struct conn){.fd = fd, .idle_us = idle_us, .in = in_buffer, .out = out_buffer};
}

static bool wait_for(int fd, short events, uint64_t deadline)
{
	struct pollfd wait = {.fd = fd, .events = events};

	for (;;) {
		uint64_t now = monotonic_us();
		int n;

		if (now >= deadline)
			return false;
		n = poll(&wait, 1, (int)((deadline - now) / 1000) + 1);
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
}

enum conn_status conn_take(struct conn *conn, struct frame *frame)
{
	for (;;) {
		ssize_t used = frame_decode(conn->in + conn->in_start, conn->in_end - conn->in_start, frame), n;

		if (used < 0)
			return CONN_INVALID;
		if (used > 0) {
			conn->in_start += (size_t)used;
			return CONN_FRAME;
		}
		if (conn->in_start > 0) {
			memmove(conn->in, conn->in + conn->in_start, conn->in_end - conn->in_start);
			conn->in_end -= conn->in_start;
			conn->in_start = 0;
		}
		n = recv(conn->fd, conn->in + conn->in_end, sizeof(in_buffer) - conn->in_end, 0);
		if (n > 0)
			conn->in_end += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return CONN_NONE;
		else if (n == 0 || errno != EINTR)
			return CONN_GONE;
	}
}

void conn_return(struct conn *conn, const struct frame *frame)
{
	conn->in_start -= FRAME_HEADER + 1 + frame->size;
}

enum conn_status conn_receive(struct conn *conn, struct frame *frame, uint64_t deadline)
{
	for (;;) {
		enum conn_status status = conn_take(conn, frame);

		if (status != CONN_NONE)
			return status;
		if (!wait_for(conn->fd, POLLIN, deadline))
			return CONN_NONE;
	}
}

static void send_now(struct conn *conn, const uint8_t *data, size_t size)
{
	while (size > 0 && !conn->broken) {
		ssize_t n = send(conn->fd, data, size, MSG_NOSIGNAL);

		if (n > 0) {
			data += n;
			size -= (size_t)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR) ||
			   !wait_for(conn->fd, POLLOUT, monotonic_us() + conn->idle_us)) {
			conn->broken = true;
		}
	}
}

bool conn_flush(struct conn *conn)
{
	send_now(conn, conn->out, conn->out_used);
	conn->out_used = 0;
	return !conn->broken;
}

void conn_offer(struct conn *conn)
{
	ssize_t n = 0;

	if (conn->out_used > 0 && !conn->broken)
		n = send(conn->fd, conn->out, conn->out_used, MSG_NOSIGNAL);
	if (n > 0) {
		conn->out_used -= (size_t)n;
		memmove(conn->out, conn->out + n, conn->out_used);
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		conn->broken = true;
	}
}

static void queue(struct conn *conn, const void *data, size_t size)
{
	if (size > OUT_SIZE - conn->out_used)
		conn_flush(conn);
	if (size > OUT_SIZE) {
		send_now(conn, data, size);
		return;
	}
	if (size > 0)
		memcpy(conn->out + conn->out_used, data, size);
	conn->out_used += size;
}

void conn_send(struct conn *conn, uint8_t tag, const void *head, size_t head_size, const void *body,
	       size_t body_size)
{
	uint8_t start[FRAME_HEADER + 1];

	put_u8(put_u32(start, (uint32_t)(1 + head_size + body_size)), tag);
	queue(conn, start, sizeof(start));
	queue(conn, head, head_size);
	queue(conn, body, body_size);
}

static void linger(struct conn *conn)
{
	uint64_t deadline = monotonic_us() + LINGER_US;

	while (monotonic_us() < deadline) {
		ssize_t n = recv(conn->fd, conn->in, sizeof(in_buffer), 0);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
		    (n < 0 && !wait_for(conn->fd, POLLIN, deadline)))
			return;
	}
}

void conn_send_error(struct conn *conn, enum error_code code, int error, const char *text)
{
	uint8_t head[5];

	put_u32(put_u8(head, (uint8_t)code), (uint32_t)error);
	conn_send(conn, 'e', head, sizeof(head), text, strlen(text));
	conn_flush(conn);
	shutdown(conn->fd, SHUT_WR);
	linger(conn);
}
