#include "keeper/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE 65536
#define READS 16

bool capture_begin(struct capture *capture, int fd, uint64_t cap)
{
	*capture = (struct capture){.fd = fd, .open = true, .cap = cap, .data = malloc(cap + 1)};
	return capture->data != NULL;
}

/* False when no more data is available now. */
static bool read_some(struct capture *capture)
{
	static uint8_t buffer[READ_SIZE];
	ssize_t n = read(capture->fd, buffer, sizeof(buffer));
	size_t keep;

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0) {
		capture->open = n < 0 && errno == EAGAIN;
		capture->error = n < 0 && errno != EAGAIN ? errno : 0;
		return false;
	}
	keep = capture->cap - capture->held;
	if (keep > (size_t)n)
		keep = (size_t)n;
	memcpy(capture->data + capture->held, buffer, keep);
	capture->held += keep;
	capture->total += (uint64_t)n;
	return true;
}

void capture_read(struct capture *capture)
{
	for (int i = 0; i < READS && read_some(capture); i++)
		;
}

/*
 * Does not wait for the end of file: a write end may still be in a message that the kernel has not garbage-collected. No
 * process can write now.
 */
void capture_drain(struct capture *capture)
{
	while (capture->open && read_some(capture))
		;
}

bool capture_is_over(const struct capture *capture, uint64_t kill_factor)
{
	return kill_factor > 0 && capture->total > capture->cap * kill_factor;
}
