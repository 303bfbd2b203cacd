#include "init/program.h"

#include "init/confine.h"
#include "lib/step.h"
#include "lib/sys.h"
#include "lib/util.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int program_reset_signals(void)
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
	/* The control group enforces the exact limit; this is a second one for jails without control groups. */
	return lower_limit(RLIMIT_NPROC, go->pids + 64);
}

/* Fails at the end of the channel. Without this report the keeper would take the end for the start of the program. */
void program_wait_for_job(struct message *go)
{
	ssize_t n = recv(FD_CONTROL, go, sizeof(*go), 0);

	if (n >= 0)
		errno = EPROTO;
	MUST(FD_CONTROL, JOB, n == (ssize_t)sizeof(*go) && go->kind == MESSAGE_GO ? 0 : -1);
}

/* Points argv and envp at the items of the job. */
static int read_job(const struct message *go, struct job *job)
{
	uint32_t argc = 0, envc = 0;
	char *at, *end;

	job->size = go->job_size;
	job->argv = calloc((size_t)go->argc + 1, sizeof(char *));
	job->envp = calloc((size_t)go->envc + 1, sizeof(char *));
	job->items = at = mmap(NULL, job->size, PROT_READ, MAP_PRIVATE, FD_JOB, 0);
	if (!job->argv || !job->envp || at == MAP_FAILED)
		return -1;
	for (end = at + job->size; at < end; at += strlen(at) + 1) {
		char kind = *at++;

		if (kind == 'A' && argc < go->argc)
			job->argv[argc++] = at;
		else if (kind == 'E' && envc < go->envc)
			job->envp[envc++] = at;
	}
	errno = EPROTO;
	return argc == go->argc && envc == go->envc ? 0 : -1;
}

void program_settle(void)
{
	MUST(FD_CONTROL, SESSION, setsid());
	MUST(FD_CONTROL, STREAMS, dup2(FD_OUT, 1));
	MUST(FD_CONTROL, STREAMS, dup2(FD_ERR, 2));
	MUST(FD_CONTROL, STREAMS, sys_close_range(FD_STATUS, FD_STATUS, 0));
	MUST(FD_CONTROL, STREAMS, sys_close_range(FD_OUT, FD_ERR, 0));
}

void program_begin_warm(const struct job *job)
{
	const struct message message = {.kind = MESSAGE_WARM};

	munmap(job->items, job->size);
	free(job->argv);
	free(job->envp);
	MUST(FD_CONTROL, JOB, send(FD_CONTROL, &message, sizeof(message), MSG_NOSIGNAL));
	MUST(FD_CONTROL, CLOSE, sys_close_range(FD_CONTROL, FD_CONTROL, 0));
}

void program_load_job(const struct message *go, struct job *job)
{
	if (go->has_stdin)
		MUST(FD_CONTROL, STREAMS, dup2(FD_STDIN, 0));
	MUST(FD_CONTROL, JOB, read_job(go, job));
	MUST(FD_CONTROL, RUN_LIMITS, limit_run(go));
}

static _Noreturn void execute(const struct job *job)
{
	struct message message = {.kind = MESSAGE_EXEC_FAILED};

	execve(job->argv[0], job->argv, job->envp);
	message.error = errno;
	(void)send(FD_CONTROL, &message, sizeof(message), MSG_NOSIGNAL);
	_exit(message.error == ENOENT ? 127 : 126);
}

_Noreturn void program_execute(const struct job *job)
{
	MUST(FD_CONTROL, SIGNALS, program_reset_signals());
	MUST(FD_CONTROL, CLOSE, sys_close_range(FD_BASE_USUAL, ~0u, CLOSE_RANGE_CLOEXEC));
	execute(job);
}

_Noreturn void program_main(const struct message *go)
{
	struct job job;

	program_settle();
	program_load_job(go, &job);
	program_execute(&job);
}

_Noreturn void program_prestart(const struct message *prestart)
{
	struct job job;

	program_settle();
	MUST(FD_CONTROL, JOB, read_job(prestart, &job));
	for (int fd = FD_CONTROL; fd < FD_FIRST_UNUSED; fd++)
		if (fd != FD_OUT && fd != FD_ERR)
			MUST(FD_CONTROL, CLOSE, dup2(fd, FD_BASE_PRESTARTED + fd - FD_STATUS));
	MUST(FD_CONTROL, SIGNALS, program_reset_signals());
	MUST(FD_CONTROL, CLOSE, sys_close_range(FD_BASE_USUAL, FD_BASE_PRESTARTED - 1, CLOSE_RANGE_CLOEXEC));
	execute(&job);
}
