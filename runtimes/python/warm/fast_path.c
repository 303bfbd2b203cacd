#include "fast_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Whether main.py is alone in its directory: no module and no file that steers the interpreter lies beside it. */
static bool is_alone(void)
{
	char entries[512] __attribute__((aligned(__alignof__(struct dirent64))));
	int fd = open(JOB_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : getdents64(fd, entries, sizeof(entries));
	bool alone = size > 0 && getdents64(fd, entries + size, sizeof(entries) - (size_t)size) == 0;

	for (ssize_t at = 0; alone && at < size;) {
		const struct dirent64 *entry = (const struct dirent64 *)(entries + at);

		alone = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			strcmp(entry->d_name, MAIN_NAME) == 0;
		at += entry->d_reclen;
	}
	if (fd >= 0)
		close(fd);
	return alone;
}

FILE *fast_path_open(const struct job *job, const char *items, size_t size)
{
	char head[2] = {0};
	FILE *file;
	int fd;

	if (job->size != size || memcmp(job->items, items, size) != 0 || !is_alone())
		return NULL;
	fd = open(MAIN_PATH, O_RDONLY | O_CLOEXEC);
	/* Python runs an archive in another way. */
	if (fd < 0 || pread(fd, head, sizeof(head), 0) < 0 || memcmp(head, "PK", sizeof(head)) == 0)
		file = NULL;
	else
		file = fdopen(fd, "r");
	if (!file && fd >= 0)
		close(fd);
	return file;
}
