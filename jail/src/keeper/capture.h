/* Captures one output stream of a run: keeps the first bytes and counts all. */
#ifndef JAIL_CAPTURE_H
#define JAIL_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture {
	int fd; /* non-blocking */
	bool open;
	int error; /* not 0: output may be missing */
	uint64_t cap, total;
	size_t held, sent; /* bytes kept; bytes of those already sent to the client */
	uint8_t *data;
};

/* False when memory allocation fails. */
bool capture_begin(struct capture *capture, int fd, uint64_t cap);
/* Reads available data, up to about a mebibyte. */
void capture_read(struct capture *capture);
/* When no process can write, after the end of the run or in a pause: reads all remaining data. */
void capture_drain(struct capture *capture);
bool capture_is_over(const struct capture *capture, uint64_t kill_factor);

#endif
