/* Starts one zygote: from the fork of the master to the interpreter that runs its script. */
#ifndef JAIL_ZYGOTE_START_H
#define JAIL_ZYGOTE_START_H

#include "keeper/jail.h"

/*
 * In the master; returns the pid, -1 on failure. `line` is the master's end and the zygote's, `output` receives what it
 * prints, `requests` is the zygotes' end of the template's socket pair.
 */
pid_t zygote_start(const struct jail_config *config, const struct zygote_options *own, const int line[2], int output,
		   int requests);

#endif
