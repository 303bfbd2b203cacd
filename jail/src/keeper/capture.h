/* One output stream of a run: its first bytes are kept, all of them are counted. */
#ifndef JAIL_CAPTURE_H
#define JAIL_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture {
	int fd; /* non-blocking */
	bool open;
	int error; /* not 0: something may be missing */
	uint64_t cap, total;
	size_t held, sent; /* kept; of those, already the client's */
	uint8_t *data;
};

/* False when memory is short. */
bool capture_begin(struct capture *capture, int fd, uint64_t cap);
/* Reads what is there, up to about a mebibyte. */
void capture_read(struct capture *capture);
/* After the last writer is gone: reads to the end of what was written. */
void capture_drain(struct capture *capture);
bool capture_is_over(const struct capture *capture, uint64_t kill_factor);

#endif
