/* Frames that are taken without waiting, and given back. */
#include "keeper/conn.h"
#include "test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint8_t bytes[4096];

static size_t add(size_t at, uint8_t tag, size_t size)
{
	put_u8(put_u32(bytes + at, (uint32_t)(1 + size)), tag);
	memset(bytes + at + FRAME_HEADER + 1, tag, size);
	return at + FRAME_HEADER + 1 + size;
}

static bool is(const struct frame *frame, uint8_t tag, size_t size)
{
	return frame->tag == tag && frame->size == size && (size == 0 || frame->payload[size - 1] == tag);
}

void test_conn(void)
{
	struct frame frame;
	struct conn conn;
	int ends[2];
	size_t size;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	conn_begin(&conn, ends[0], 1000);
	CHECK(conn_take(&conn, &frame) == CONN_NONE);
	size = add(add(add(0, 'Q', 0), 'G', 4), 'C', 8);
	/* The last frame comes in two parts. */
	CHECK(write(ends[1], bytes, size - 3) == (ssize_t)size - 3);
	CHECK(conn_take(&conn, &frame) == CONN_FRAME && is(&frame, 'Q', 0));
	conn_return(&conn, &frame);
	CHECK(conn_take(&conn, &frame) == CONN_FRAME && is(&frame, 'Q', 0));
	CHECK(conn_take(&conn, &frame) == CONN_FRAME && is(&frame, 'G', 4));
	conn_return(&conn, &frame);
	CHECK(conn_take(&conn, &frame) == CONN_FRAME && is(&frame, 'G', 4));
	CHECK(conn_take(&conn, &frame) == CONN_NONE && conn_take(&conn, &frame) == CONN_NONE);
	CHECK(write(ends[1], bytes + size - 3, 3) == 3);
	CHECK(conn_receive(&conn, &frame, 0) == CONN_FRAME && is(&frame, 'C', 8));
	CHECK(conn_receive(&conn, &frame, 0) == CONN_NONE); /* the deadline has passed */
	CHECK(write(ends[1], "\xff\xff\xff\xff\xff", 5) == 5);
	CHECK(conn_take(&conn, &frame) == CONN_INVALID && conn_take(&conn, &frame) == CONN_INVALID);
	conn_begin(&conn, ends[0], 1000);
	close(ends[1]);
	CHECK(conn_take(&conn, &frame) == CONN_GONE && conn_receive(&conn, &frame, 0) == CONN_GONE);
	close(ends[0]);
}
