/*
 * How a zygote copies itself into a jail, whatever interpreter it is: take a request,
 * fork, and in the new process the same confinement as in a cold start, then
 * wait for the job. Nothing of a job is read before the confinement is complete.
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

/* Once, in the zygote. False: it was not started by jaild. */
bool zygote_begin(void);

/* Waits for a request; notifies the master when the zygote is old. False: the master has released this zygote. */
bool zygote_take(struct entry *entry);

/* True in the new process, which is in the jail's process namespace and has all of the zygote's power. */
bool zygote_fork(struct entry *entry);

/* In the new process. Every step is checked; one that fails ends it. */
void zygote_enter(const struct entry *entry);

/* In the confined process: says that it is ready, with a word for the client, and returns when there is a job. */
void zygote_await_job(struct job *job, uint32_t word);

/* Of the descriptors only 0, 1, 2 and the control channel stay. */
void zygote_close_rest(void);

/* The master may send requests from here on. */
void zygote_is_complete(void);

#endif
