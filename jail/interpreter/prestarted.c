#include "interpreter/prestarted.h"

#include "lib/sys.h"

#include <sys/socket.h>

void prestarted_wait(struct job *job)
{
	struct message message = {.kind = MESSAGE_READY};

	MUST(FD_CONTROL, JOB, send(FD_CONTROL, &message, sizeof(message), MSG_NOSIGNAL));
	program_wait_for_job(&message);
	program_load_job(&message, job);
}

void prestarted_begin(struct job *job)
{
	MUST(FD_CONTROL, CLOSE, sys_close_range(FD_OUT, FD_FIRST_UNUSED - 1, 0));
	program_begin_warm(job);
}
