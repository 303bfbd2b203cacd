#include "program.h"

#include "jail.h"
#include "step.h"
#include "sys.h"
#include "util.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MUST(step, call)                                         \
	do {                                                     \
		if ((call) < 0)                                  \
			report_failure(FD_CONTROL, STEP_##step); \
	} while (0)

_Noreturn void report_failure(int control, int step)
{
	const struct message message = {.kind = MESSAGE_FAILED, .step = step, .error = errno};

	(void)send(control, &message, sizeof(message), MSG_NOSIGNAL);
	_exit(126);
}

/* Every disposition is the default, but a file that grows too large is an ordinary EFBIG. */
static int reset_signals(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int signal = 1; signal < NSIG; signal++) {
		action.sa_handler = signal == SIGXFSZ ? SIG_IGN : SIG_DFL;
		/* SIGKILL, SIGSTOP and the C library's own two cannot be set and are never changed. */
		if (sigaction(signal, &action, NULL) < 0 && errno != EINVAL)
			return -1;
	}
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

static int lower_limit(int resource, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
		return -1;
	if (value < limit.rlim_max)
		limit.rlim_max = value;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit((__rlimit_resource_t)resource, &limit);
}

static int limit_run(const struct message *go)
{
	if (lower_limit(RLIMIT_NOFILE, go->open_files) < 0 ||
	    lower_limit(RLIMIT_FSIZE, go->file_size_bytes) < 0)
		return -1;
	/* The control group counts exactly; this is a second fence for one that is missing. */
	return lower_limit(RLIMIT_NPROC, go->pids + 64);
}

/* An end without a word would be taken for the program's. */
static int wait_for_job(struct message *go)
{
	ssize_t n = recv(FD_CONTROL, go, sizeof(*go), 0);

	if (n >= 0)
		errno = EPROTO;
	return n == (ssize_t)sizeof(*go) && go->kind == MESSAGE_GO ? 0 : -1;
}

/* Points argv and envp at the items of the job. */
static int read_job(const struct message *go, char ***argv, char ***envp)
{
	char *at, *end;
	uint32_t argc = 0, envc = 0;

	*argv = calloc((size_t)go->argc + 1, sizeof(char *));
	*envp = calloc((size_t)go->envc + 1, sizeof(char *));
	at = mmap(NULL, go->job_size, PROT_READ, MAP_PRIVATE, FD_JOB, 0);
	if (!*argv || !*envp || at == MAP_FAILED)
		return -1;
	for (end = at + go->job_size; at < end; at += strlen(at) + 1) {
		char kind = *at++;

		if (kind == 'A' && argc < go->argc)
			(*argv)[argc++] = at;
		else if (kind == 'E' && envc < go->envc)
			(*envp)[envc++] = at;
	}
	errno = EPROTO;
	return argc == go->argc && envc == go->envc ? 0 : -1;
}

_Noreturn void program_main(void)
{
	struct message message = {.kind = MESSAGE_READY};
	char **argv, **envp;

	MUST(SIGNALS, reset_signals());
	MUST(SESSION, setsid());
	MUST(STREAMS, dup2(FD_OUT, 1));
	MUST(STREAMS, dup2(FD_ERR, 2));
	MUST(STREAMS, sys_close_range(FD_STATUS, FD_STATUS, 0));
	if (send(FD_CONTROL, &message, sizeof(message), MSG_NOSIGNAL) < 0)
		_exit(126);
	MUST(JOB, wait_for_job(&message));
	if (message.has_stdin)
		MUST(STREAMS, dup2(FD_STDIN, 0));
	MUST(JOB, read_job(&message, &argv, &envp));
	MUST(RUN_LIMITS, limit_run(&message));
	MUST(CLOSE, sys_close_range(3, ~0u, CLOSE_RANGE_CLOEXEC));
	execve(argv[0], argv, envp);
	message = (struct message){.kind = MESSAGE_EXEC_FAILED, .error = errno};
	(void)send(FD_CONTROL, &message, sizeof(message), MSG_NOSIGNAL);
	_exit(message.error == ENOENT ? 127 : 126);
}
