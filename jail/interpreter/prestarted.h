/*
 * The object that a pre-started interpreter loads to receive its job. Such an interpreter starts in its jail, completely
 * confined, before the job arrives. Node calls these functions (runtimes/javascript/warm/node.c). A shell waits in them
 * before its own first instruction (runtimes/bash/warm/shell.c). A call that fails ends the process.
 */
#ifndef INTERPRETER_PRESTARTED_H
#define INTERPRETER_PRESTARTED_H

#include "init/confine.h"
#include "init/program.h"

/* Reports that the interpreter is ready, waits for the job, and takes its standard input and limits. Reads no byte of a job before. */
void prestarted_wait(struct job *job);

/* Turns the process into the program: notifies the keeper, closes every descriptor of this object and unmaps the job. */
void prestarted_begin(struct job *job);

#endif
