/*
 * How a zygote of any interpreter copies itself into a jail. It takes a request and forks. The new process confines itself
 * as in a cold start and then waits for the job. It reads no byte of a job before the confinement is complete.
 */
#ifndef INTERPRETER_ENTER_H
#define INTERPRETER_ENTER_H

#include "init/confine.h"
#include "init/program.h"
#include "warm/zygote_wire.h"

#include <stdbool.h>

struct entry {
	struct zygote_request request;
	int given[GIVEN];
};

/* Called once, in the zygote. False when jaild did not start it, or when it has another descriptor or a second thread. */
bool zygote_begin(void);

/* Waits for a request; notifies the master when the zygote is old. False: the master has released this zygote. */
bool zygote_take(struct entry *entry);

/* True in the new process, which is in the jail's pid namespace and still has all privileges of the zygote. */
bool zygote_fork(struct entry *entry);

/* In the new process: confines it. A step that fails ends the process. */
void zygote_enter(const struct entry *entry);

/* In the confined process: reports that it is ready, with a word for the client, and returns when the job arrives. */
void zygote_await_job(struct job *job, uint32_t word);

/* Closes all descriptors except 0, 1, 2 and the control channel. */
void zygote_close_rest(void);

/* Reports to the master that this zygote can take requests. */
void zygote_is_complete(void);

#endif
