/*
 * A keeper's connection: whole frames in, buffered frames out. The descriptor
 * is non-blocking; every wait has an end. Nothing received is trusted.
 */
#ifndef JAIL_CONN_H
#define JAIL_CONN_H

#include "keeper/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum conn_status { CONN_FRAME, CONN_GONE, CONN_INVALID, CONN_NONE };

enum error_code { ERROR_PROTOCOL = 1, ERROR_SETUP, ERROR_INPUTS, ERROR_INTERNAL };

struct conn {
	int fd;
	uint64_t idle_us; /* longest wait for a peer that does not read */
	bool broken;	  /* a write failed: all later output is dropped */
	size_t in_start, in_end, out_used;
	uint8_t *in, *out;
};

/* Takes over an accepted descriptor. */
void conn_begin(struct conn *conn, int fd, uint64_t idle_us);

/* The next frame; its payload stays valid until the next call. CONN_NONE: none came before `deadline`, on monotonic_us. */
enum conn_status conn_receive(struct conn *conn, struct frame *frame, uint64_t deadline);

/* The same without waiting: CONN_NONE when no complete frame has arrived. */
enum conn_status conn_take(struct conn *conn, struct frame *frame);

/* Puts the last frame of conn_take back for the next call. */
void conn_return(struct conn *conn, const struct frame *frame);

/* Queues a frame: a head and an optional body, together the payload. */
void conn_send(struct conn *conn, uint8_t tag, const void *head, size_t head_size, const void *body,
	       size_t body_size);
/*
 * Sends the last frame of a connection. Keeps reading for a moment, so that a peer that still sends receives the reason
 * instead of a reset.
 */
void conn_send_error(struct conn *conn, enum error_code code, int error, const char *text);
/* False when the peer is gone or stuck. */
bool conn_flush(struct conn *conn);
/* The same without waiting: what the peer does not take now stays queued. */
void conn_offer(struct conn *conn);

#endif
