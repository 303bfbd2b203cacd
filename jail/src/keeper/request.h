/*
 * Receives a job: checks the order and bounds of the frames up to 'R', stages files as their bytes arrive, and writes
 * arguments, environment and standard input to the jail's memory files. Up to 'S' it receives a command to pre-start
 * instead: arguments, environment and limits, and nothing else.
 */
#ifndef JAIL_REQUEST_H
#define JAIL_REQUEST_H

#include "keeper/conn.h"
#include "keeper/jail.h"
#include "keeper/stage.h"

#define ARGUMENTS_MAX 300
#define ENVIRONMENT_MAX 65536
#define JOB_BYTES_MAX (64u << 20)
#define STDIN_BYTES_MAX (64u << 20)
#define REQUEST_LATE "the job did not come in time"

struct request {
	struct limits limits;
	bool has_limits, has_stdin, is_prestart;
	bool is_listed_whole; /* see harvest.h */
	bool is_live;	      /* output is sent as it comes */
	uint32_t argc, envc;
	uint64_t job_size;
	struct inputs inputs;
};

/* True when the job is complete; otherwise an error was sent to the client, if it is still connected. */
bool request_receive(struct request *request, struct conn *conn, const struct jail *jail,
		     const struct options *options);

#endif
