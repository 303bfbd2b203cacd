/*
 * The first program of a guest's root image. It mounts what programs expect and starts the guest's one process (src/guest/main.ts). It copies
 * bytes between that process and the two ports that lead out of the guest. It takes the time and random bytes from a third port
 * (src/channel/control.ts). Whatever ends or fails ends the guest.
 */
#include "guest.h"

#include <fcntl.h>
#include <linux/random.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define NODE "/opt/svc/node"
#define MAIN "/opt/svc/node_modules/.cache/components/guest.mjs"
#define CONTROL_PORT 2
#define SEED_BYTES 64
#define CHANNELS 2 /* MAIN finds them from descriptor 3 on: to the runner, to the gateway */
#define DEVICES_MAX 8 /* a port has the number of its device among all virtio devices */
#define BUFFER_BYTES 65536
#define OPEN_FILES 65536

/* One direction of a channel, with the bytes that were read and not yet written. */
struct pipe {
	int from, to;
	size_t at, length;
	char bytes[BUFFER_BYTES];
};

static struct pipe pipes[2 * CHANNELS];

/* The third port and its current message, of which `held` bytes have arrived. */
static struct {
	int fd;
	size_t held;
	struct {
		uint64_t seconds, nanoseconds;
		unsigned char seed[SEED_BYTES];
	} message;
} control;

static void mount_all(void)
{
	mount_new("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_new("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_new("cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_new("tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755");
	mount_new("tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777");
	mount_new("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
}

static void raise_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(fd, "a socket");
	must(ioctl(fd, SIOCSIFFLAGS, &request), "the loopback device");
	close(fd);
}

static void set_nonblocking(int fd)
{
	must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), "a descriptor");
}

static _Noreturn void become_service(const int *ends)
{
	static char *const argv[] = {NODE, "--max-semi-space-size=4", "--disable-warning=ExperimentalWarning", MAIN, NULL};
	static char *const env[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/nonexistent", "MALLOC_ARENA_MAX=2",
				    "NODE_COMPILE_CACHE=/opt/svc/node_modules/.cache/compile", NULL};
	struct rlimit files = {OPEN_FILES, OPEN_FILES};

	for (int i = 0; i < CHANNELS; i++)
		must(dup2(ends[i], 3 + i), "a channel");
	must(setrlimit(RLIMIT_NOFILE, &files), "the limits");
	execve(NODE, argv, env);
	end(NODE);
}

/* Waits until the other side is there: the kernel learns that later than the name of the port. -1: it does not come. */
static int connected(int port)
{
	for (int tries = 0; port >= 0 && tries < DEVICE_TRIES; tries++, usleep(DEVICE_WAIT_US)) {
		struct pollfd waited = {port, POLLOUT, 0};

		if (poll(&waited, 1, 0) >= 0 && !(waited.revents & POLLHUP))
			return port;
	}
	if (port >= 0)
		errno = ENOTCONN;
	return -1;
}

/* Finds a port by its name "svc.N": the kernel numbers devices in its own order. */
static int open_port(int number)
{
	for (int tries = 0; tries < DEVICE_TRIES; tries++, usleep(DEVICE_WAIT_US)) {
		for (int device = 0; device < DEVICES_MAX; device++) {
			char path[64], name[16] = "";
			int fd;

			snprintf(path, sizeof(path), "/sys/class/virtio-ports/vport%dp1/name", device);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				continue;
			if (read(fd, name, sizeof(name) - 1) < 0)
				name[0] = '\0';
			close(fd);
			if (strncmp(name, "svc.", 4) != 0 || atoi(name + 4) != number)
				continue;
			snprintf(path, sizeof(path), "/dev/vport%dp1", device);
			return connected(open(path, O_RDWR | O_CLOEXEC));
		}
	}
	errno = ENODEV;
	return -1;
}

/* Returns the process id of the service. `pipes` connect its channels to the ports. */
static pid_t start_service(void)
{
	int ends[CHANNELS];
	pid_t pid;

	for (int i = 0; i < CHANNELS; i++) {
		int port = open_port(i), pair[2];

		must(port, "a port");
		must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "a pair of sockets");
		set_nonblocking(port);
		set_nonblocking(pair[0]);
		pipes[2 * i].from = pipes[2 * i + 1].to = port;
		pipes[2 * i].to = pipes[2 * i + 1].from = pair[0];
		/* Above the descriptors that they become, so that dup2 overwrites none of them. */
		ends[i] = fcntl(pair[1], F_DUPFD_CLOEXEC, 3 + CHANNELS);
		must(ends[i], "a descriptor");
		close(pair[1]);
	}
	pid = fork();
	must(pid, "a process");
	if (pid == 0)
		become_service(ends);
	for (int i = 0; i < CHANNELS; i++)
		close(ends[i]);
	return pid;
}

/* Moves as many bytes as it can without blocking. */
static void carry(struct pipe *pipe)
{
	ssize_t moved;

	if (pipe->length == 0) {
		moved = read(pipe->from, pipe->bytes, sizeof(pipe->bytes));
		if (moved < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		must(moved > 0 ? 0 : -1, "a channel");
		pipe->at = 0;
		pipe->length = moved;
	}
	moved = write(pipe->to, pipe->bytes + pipe->at, pipe->length);
	if (moved < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	must(moved > 0 ? 0 : -1, "a channel");
	pipe->at += moved;
	pipe->length -= moved;
}

static void mix_in(const unsigned char *seed)
{
	struct {
		struct rand_pool_info head;
		unsigned char bytes[SEED_BYTES];
	} pool = {.head = {.entropy_count = SEED_BYTES * 8, .buf_size = SEED_BYTES}};
	int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);

	must(fd, "/dev/urandom");
	memcpy(pool.bytes, seed, SEED_BYTES);
	must(ioctl(fd, RNDADDENTROPY, &pool), "the random numbers");
	must(ioctl(fd, RNDRESEEDCRNG), "the random numbers");
	close(fd);
}

/* Confirms a message with the current time of the clock. */
static void confirm(void)
{
	struct timespec now;
	uint64_t time[2];

	must(clock_gettime(CLOCK_REALTIME, &now), "the clock");
	time[0] = now.tv_sec;
	time[1] = now.tv_nsec;
	must(write(control.fd, time, sizeof(time)) == sizeof(time) ? 0 : -1, "the control port");
}

/* Reads a message, applies it and confirms it once it is complete. False: it is not complete yet. */
static bool take_update(void)
{
	ssize_t got = read(control.fd, (char *)&control.message + control.held, sizeof(control.message) - control.held);
	struct timespec now;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	must(got > 0 ? 0 : -1, "the control port");
	control.held += got;
	if (control.held < sizeof(control.message))
		return false;
	control.held = 0;
	now = (struct timespec){(time_t)control.message.seconds, (long)control.message.nanoseconds};
	must(clock_settime(CLOCK_REALTIME, &now), "the clock");
	mix_in(control.message.seed);
	confirm();
	return true;
}

/* Waits for the first message, before which nothing starts. */
static void take_first_update(void)
{
	control.fd = open_port(CONTROL_PORT);
	must(control.fd, "the control port");
	while (!take_update())
		;
	set_nonblocking(control.fd);
}

static void reap(pid_t service)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		errno = 0;
		if (pid == service)
			end("the service");
	}
}

static void on_child(int signal)
{
	(void)signal;
}

static _Noreturn void serve(void)
{
	struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
	sigset_t blocked, open;
	pid_t service;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &open);
	sigaction(SIGCHLD, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	take_first_update();
	service = start_service();
	for (;;) {
		struct pollfd waited[2 * CHANNELS + 1];

		for (int i = 0; i < 2 * CHANNELS; i++) {
			bool full = pipes[i].length > 0;

			waited[i] = (struct pollfd){full ? pipes[i].to : pipes[i].from, full ? POLLOUT : POLLIN, 0};
		}
		waited[2 * CHANNELS] = (struct pollfd){control.fd, POLLIN, 0};
		if (ppoll(waited, 2 * CHANNELS + 1, NULL, &open) < 0) {
			if (errno != EINTR)
				end("waiting");
			for (int i = 0; i <= 2 * CHANNELS; i++)
				waited[i].revents = 0;
		}
		if (waited[2 * CHANNELS].revents)
			take_update();
		reap(service);
		for (int i = 0; i < 2 * CHANNELS; i++)
			if (waited[i].revents)
				carry(&pipes[i]);
	}
}

int main(void)
{
	if (getpid() != 1)
		return 1;
	mount_all();
	raise_loopback();
	serve();
}
