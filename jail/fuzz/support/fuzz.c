#include "fuzz.h"

#include "lib/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/dev/shm/svc-fuzz-XXXXXX"; /* a tmpfs, as a workspace is */

/* A refused job is a line in the log, and nearly every job of a fuzzer is refused. */
void __wrap_log_line(enum log_level level, int slot, int error, const char *format, ...);
void __wrap_log_line(enum log_level level, int slot, int error, const char *format, ...)
{
	(void)level, (void)slot, (void)error, (void)format;
}

uint8_t take(struct bytes *bytes)
{
	return bytes->at < bytes->end ? *bytes->at++ : 0;
}

static void remove_playground(void)
{
	char workspace[sizeof(path) + 16];

	snprintf(workspace, sizeof(workspace), "%s/workspace", path);
	rmdir(workspace);
	rmdir(path);
}

int playground_open(void)
{
	int fd;

	umask(0);
	PROMISE(mkdtemp(path) != NULL);
	atexit(remove_playground);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	PROMISE(fd >= 0 && mkdirat(fd, "workspace", 0755) == 0);
	return fd;
}

static void empty(int fd)
{
	DIR *directory = fdopendir(fd);
	struct dirent *entry;

	PROMISE(directory != NULL);
	while ((entry = readdir(directory))) {
		const char *name = entry->d_name;
		int below;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(fd, name, 0) == 0)
			continue;
		below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		PROMISE(below >= 0);
		empty(below);
		PROMISE(unlinkat(fd, name, AT_REMOVEDIR) == 0);
	}
	closedir(directory);
}

void playground_clear(int playground)
{
	DIR *directory;
	int entries = 0;

	empty(openat(playground, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	directory = fdopendir(openat(playground, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	PROMISE(directory != NULL);
	while (readdir(directory))
		entries++;
	closedir(directory);
	PROMISE(entries == 3);
}

void pair_open(int ends[2])
{
	const int size = 1 << 20;

	PROMISE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	for (int i = 0; i < 2; i++)
		PROMISE(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
}
