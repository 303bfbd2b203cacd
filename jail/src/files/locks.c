#include "files/locks.h"

#include <unistd.h>

void locks_read(struct lock_count *count, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		/* "->" marks a lock that waits. */
		if (count->last == '-' && text[i] >= '0' && text[i] <= '9')
			count->foreign = true;
		if (text[i] == '\n') {
			count->own += !count->foreign;
			count->foreign = false;
		}
		count->last = text[i];
	}
}

int locks_are_too_many(int list)
{
	struct lock_count count = {0};
	char text[4096]; /* the kernel returns at most a page per read */
	ssize_t size;

	if (lseek(list, 0, SEEK_SET) < 0)
		return -1;
	while (count.own <= LOCKS_MAX && (size = read(list, text, sizeof(text))) != 0) {
		if (size < 0)
			return -1;
		locks_read(&count, text, (size_t)size);
	}
	return count.own > LOCKS_MAX;
}
