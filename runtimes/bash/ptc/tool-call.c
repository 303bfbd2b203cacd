/*
 * tool-call: one tool call of a shell program.
 *
 *   tool-call INDEX NAME COUNT [quiet]
 *
 * INDEX is the tool's position in the program's list, NAME the name by which the program calls it, COUNT the number of
 * arguments. With 0 the call's input is {}; with 1 it is read from standard input; with more the call is refused. The input
 * is sent unchanged to the relay behind the socket of SANDBOX_TOOL_SOCKET. Only the relay judges whether it is a JSON
 * object.
 *
 * Exit status: 0, the result is one line on standard output; 1, the tool failed, its message is on standard error and
 * standard output is empty; 2, the input is no JSON object and no call was made. With `quiet` the relay's message about
 * that is not printed.
 *
 * Runs with the rights of the program and trusts nothing of it. Needs no library at run time.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { DONE = 0, FAILED = 1, NO_OBJECT = 2, CHUNK = 1 << 16 };

struct bytes {
	char *at;
	size_t length, room;
};

static void say(const char *text, size_t length) {
	while (length > 0) {
		ssize_t n = write(2, text, length);
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) return;
		text += n, length -= (size_t)n;
	}
}

static int fail(int status, const char *name, const char *problem) {
	say(name, strlen(name));
	say(": ", 2);
	say(problem, strlen(problem));
	say("\n", 1);
	return status;
}

/* Reads to the end of a descriptor. A reset connection counts as its end; what was received before is kept. */
static bool read_all(int fd, struct bytes *into) {
	for (;;) {
		if (into->room - into->length < CHUNK) {
			size_t room = into->room * 2 + 2 * CHUNK;
			char *at = realloc(into->at, room);
			if (at == NULL) return false;
			into->at = at, into->room = room;
		}
		/* One byte stays free for the terminating NUL. */
		ssize_t n = read(fd, into->at + into->length, into->room - into->length - 1);
		if (n < 0 && errno == EINTR) continue;
		if (n < 0 && errno != ECONNRESET) return false;
		if (n <= 0) break;
		into->length += (size_t)n;
	}
	into->at[into->length] = '\0';
	return true;
}

/* Sends everything, or as much as the relay reads before it answers. */
static void send_all(int fd, const char *text, size_t length) {
	while (length > 0) {
		ssize_t n = send(fd, text, length, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) return;
		text += n, length -= (size_t)n;
	}
}

static bool print_line(char *text, size_t length) {
	text[length++] = '\n';
	while (length > 0) {
		ssize_t n = write(1, text, length);
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) return false;
		text += n, length -= (size_t)n;
	}
	return true;
}

static int connect_relay(void) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("SANDBOX_TOOL_SOCKET");
	if (path == NULL) path = "/run/svc/3190.sock";
	if (strlen(path) >= sizeof address.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) return -1;
	int connected;
	do connected = connect(fd, (struct sockaddr *)&address, sizeof address);
	while (connected < 0 && errno == EINTR);
	return connected < 0 && errno != EISCONN ? -1 : fd;
}

/* The Content-Length; the number of bytes received when there is none. */
static size_t body_length(const char *head, size_t there) {
	for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
		if (strncasecmp(line + 2, "content-length:", 15) == 0) return strtoul(line + 17, NULL, 10);
	}
	return there;
}

static int finish(const char *name, bool quiet, struct bytes *answer) {
	char *split = strstr(answer->at, "\r\n\r\n");
	if (split == NULL || strncmp(answer->at, "HTTP/1.", 7) != 0)
		return fail(FAILED, name, "the connection was lost before the tool answered");
	split[2] = '\0';
	char *body = split + 4;
	size_t there = answer->length - (size_t)(body - answer->at);
	size_t length = body_length(answer->at, there);
	if (there < length) return fail(FAILED, name, "the connection was lost before the tool answered");
	long status = strtol(answer->at + 9, NULL, 10);
	if (status == 200) return print_line(body, length) ? DONE : fail(FAILED, name, strerror(errno));
	if (status == 400 && quiet) return NO_OBJECT;
	if (status != 422) {
		say(name, strlen(name));
		say(": ", 2);
	}
	body[length] = '\n';
	say(body, length + 1);
	return status == 400 ? NO_OBJECT : FAILED;
}

int main(int argc, char **argv) {
	if (argc < 4) return fail(NO_OBJECT, "tool-call", "needs INDEX NAME COUNT");
	const char *index = argv[1], *name = argv[2];
	bool quiet = argc > 4;
	long count = strtol(argv[3], NULL, 10);
	if (count > 1) return fail(NO_OBJECT, name, "takes one argument, a JSON object; quote it as one word");

	struct bytes input = {0}, answer = {0};
	char empty[] = "{}";
	if (count == 1 && !read_all(0, &input)) return fail(FAILED, name, strerror(errno));
	/* Drops the line end that the here-string in prelude.bash adds. */
	if (input.length > 0 && input.at[input.length - 1] == '\n') input.length--;
	if (count == 0) input = (struct bytes){.at = empty, .length = 2};

	int relay = connect_relay();
	if (relay < 0) return fail(FAILED, name, "tools cannot be called here");
	char head[256];
	int length = snprintf(head, sizeof head,
		"POST /tool-call HTTP/1.1\r\nHost: tools\r\nContent-Type: application/vnd.svc.tool-input\r\n"
		"X-Tool-Index: %.16s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		index, input.length);
	send_all(relay, head, (size_t)length);
	send_all(relay, input.at, input.length);
	if (!read_all(relay, &answer)) return fail(FAILED, name, strerror(errno));
	return finish(name, quiet, &answer);
}
