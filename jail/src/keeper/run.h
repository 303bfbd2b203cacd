/*
 * One run, from MESSAGE_GO to the death of its last process: limits, streams, pauses, and the result. The cause of the
 * end is derived from the wait status and the control group counters only.
 */
#ifndef JAIL_RUN_H
#define JAIL_RUN_H

#include "keeper/capture.h"
#include "keeper/conn.h"
#include "keeper/jail.h"
#include "keeper/reached.h"
#include "keeper/request.h"

#include <stdint.h>

enum cause {
	CAUSE_EXITED, CAUSE_SIGNALED, CAUSE_WALL, CAUSE_CPU, CAUSE_MEMORY, CAUSE_STDOUT, CAUSE_STDERR,
};

struct result {
	enum cause cause;
	int exit_code, signal, exec_error;
	uint64_t wall_us, cpu_us, memory_peak, oom_kills;
	struct reached reached;
};

enum run_status {
	RUN_ENDED,
	RUN_GONE,  /* the client left; the run was killed */
	RUN_FAILED /* an error was sent to the client */
};

/* Sets the limits of the jail and the matching files in its /proc. Called for a pre-started program and again for the run. */
int run_set_limits(struct jail *jail, const struct limits *limits, const struct options *options);

/* On RUN_ENDED no process of the run exists and the streams are complete. */
enum run_status run_program(struct conn *conn, struct jail *jail, const struct request *request,
			    const struct options *options, struct capture streams[2],
			    struct result *result);

/*
 * Whether the program's own memory is above its limit. Page cache does not count, because the kernel can reclaim it, and
 * neither do the three file systems, which have limits of their own.
 */
bool memory_is_over(const struct cgroup_usage *usage, uint64_t file_system_bytes, uint64_t limit);

/*
 * The memory that a run holds now. Pages of staged files are charged to no run, because a keeper writes them. So what the
 * three file systems hold beyond the run's shared pages is added. -1 with errno on failure.
 */
int run_memory(const struct jail *jail, uint64_t *bytes);

/* Derives the cause from the wait status of a program that no limit killed. */
void result_set_status(struct result *result, int status);

#endif
