#include "lib/descriptors.h"

#include "lib/sys.h"

#include <stdlib.h>

int descriptors_begin(void)
{
	int fd;

	/* The next file that is opened would take the number of a closed stream. */
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd < 0 ? -1 : sys_close_range(STDERR_FILENO + 1, ~0u, 0);
}

static int compare(const void *a, const void *b)
{
	int left = *(const int *)a, right = *(const int *)b;

	return (left > right) - (left < right);
}

int descriptors_keep(int *kept, size_t count)
{
	unsigned first = 0; /* after the last one that stays */

	qsort(kept, count, sizeof(*kept), compare);
	for (size_t i = 0; i < count; i++) {
		if (kept[i] < 0 || (unsigned)kept[i] < first)
			continue;
		if ((unsigned)kept[i] > first && sys_close_range(first, (unsigned)kept[i] - 1, 0) < 0)
			return -1;
		first = (unsigned)kept[i] + 1;
	}
	return sys_close_range(first, ~0u, 0);
}
