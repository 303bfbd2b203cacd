/*
 * What is loaded into an interpreter that was started ahead of its job, in its jail and under its complete confinement: how it
 * gets the job. Node asks for it (node.c), a shell is stopped before its first instruction (shell.c). A call that fails
 * ends the process.
 */
#ifndef INTERPRETER_PRESTARTED_H
#define INTERPRETER_PRESTARTED_H

#include "init/confine.h"
#include "init/program.h"

/* Says that it is ready, sleeps until there is a job, takes its standard input and limits. Before, no byte of a job is read. */
void prestarted_wait(struct job *job);

/* It will be that program: the keeper is told, nothing of this stays open, and the job is gone. */
void prestarted_begin(struct job *job);

#endif
