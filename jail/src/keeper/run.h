/*
 * One run, from MESSAGE_GO to the death of its last process: limits, streams,
 * pauses that the client asks for, and what was observed. Why a run ended comes
 * from wait status and control group counters only.
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

/* What the jail may use, and what it sees of the machine. Called for a pre-started program and again for the run. */
int run_set_limits(struct jail *jail, const struct limits *limits, const struct options *options);

/* On RUN_ENDED no process of the run exists and the streams are complete. */
enum run_status run_program(struct conn *conn, struct jail *jail, const struct request *request,
			    const struct options *options, struct capture streams[2],
			    struct result *result);

/*
 * Whether the program's own memory is above its limit. Clean pages of image files
 * can be taken back at any time, and what the three file systems hold has limits
 * of its own: neither counts.
 */
bool memory_is_over(const struct cgroup_usage *usage, uint64_t file_system_bytes, uint64_t limit);

/* What ended a run that was not killed by a limit: its wait status. */
void result_set_status(struct result *result, int status);

#endif
