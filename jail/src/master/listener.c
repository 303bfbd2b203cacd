#include "master/listener.h"

#include "lib/util.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct stat made; /* the socket; st_ino 0: none */

static void remove_dead(const struct sockaddr_un *address)
{
	int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (probe < 0)
		fatal("cannot make a socket");
	if (lstat(address->sun_path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode)) {
			errno = EEXIST;
			fatal("%s exists and is not a socket", address->sun_path);
		}
		if (connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0) {
			errno = EADDRINUSE;
			fatal("another process listens on %s", address->sun_path);
		}
		unlink(address->sun_path);
	}
	close(probe);
}

int listener_open(const struct options *options)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask;

	if (fd < 0 || strlen(options->socket) >= sizeof(address.sun_path)) {
		errno = fd < 0 ? errno : ENAMETOOLONG;
		fatal("cannot make the socket %s", options->socket);
	}
	memcpy(address.sun_path, options->socket, strlen(options->socket) + 1);
	remove_dead(&address);
	mask = umask(0777);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		fatal("cannot bind the socket %s", options->socket);
	umask(mask);
	if (lstat(options->socket, &made) < 0 ||
	    lchown(options->socket, options->socket_uid, options->socket_gid) < 0 ||
	    listen(fd, (int)options->slots * 2 + 64) < 0 || chmod(options->socket, options->socket_mode) < 0) {
		int saved = errno;

		unlink(options->socket);
		errno = saved;
		fatal("cannot set up the socket %s", options->socket);
	}
	return fd;
}

void listener_remove(const struct options *options)
{
	struct stat st;

	if (made.st_ino == 0)
		return;
	if (lstat(options->socket, &st) == 0) {
		/* Another jaild may have replaced it. */
		if (st.st_ino != made.st_ino || st.st_dev != made.st_dev || unlink(options->socket) == 0)
			return;
	} else if (errno == ENOENT) {
		return;
	}
	log_line(LOG_ERROR, -1, errno, "the socket cannot be removed");
}
