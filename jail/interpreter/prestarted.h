/*
 * Loaded into a pre-started interpreter: one that is started in its jail, completely confined, before its job is there. It
 * receives the job. Node calls it (runtimes/javascript/warm/node.c); a shell stops in it before its first own instruction
 * (runtimes/bash/warm/shell.c). A call that fails ends the process.
 */
#ifndef INTERPRETER_PRESTARTED_H
#define INTERPRETER_PRESTARTED_H

#include "init/confine.h"
#include "init/program.h"

/* Says that it is ready, sleeps until there is a job, takes its standard input and limits. Before, no byte of a job is read. */
void prestarted_wait(struct job *job);

/* The process becomes the program: notifies the keeper, closes every descriptor of this object and unmaps the job. */
void prestarted_begin(struct job *job);

#endif
