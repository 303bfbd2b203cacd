#include "network.h"

#include "sys.h"
#include "util.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define BIRTH_MS 1000 /* longest life of the process that a namespace is made with */
#define NO_SOCKETS "sockets: used 0\n"

int network_make(void)
{
	struct clone_args args = {.flags = CLONE_NEWNET, .exit_signal = SIGCHLD};
	pid_t pid = sys_clone3(&args);
	int namespace, saved;
	char path[64];

	if (pid < 0)
		return -1;
	if (pid == 0) {
		sleep_ms(BIRTH_MS);
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	namespace = open(path, O_RDONLY | O_CLOEXEC);
	saved = errno;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	errno = saved;
	return namespace;
}

bool network_text_is_empty(const char *text)
{
	return strncmp(text, NO_SOCKETS, strlen(NO_SOCKETS)) == 0;
}

/*
 * The kernel counts a socket of a program from its making until its memory is free: also one without a name, one that is
 * on its way in a message that nobody will read, and the other side's end of a connection to the tools. Every process of the
 * runs before is dead, so the number only falls.
 */
static bool is_empty(int host_proc)
{
	char text[512];

	return read_file_at(host_proc, "self/net/sockstat", text, sizeof(text)) > 0 && network_text_is_empty(text);
}

int network_enter(int network, int host_proc)
{
	if (network >= 0 && setns(network, CLONE_NEWNET) == 0 && is_empty(host_proc))
		return 0;
	return unshare(CLONE_NEWNET);
}
