/* The birth of one zygote: from a fork of the master to the interpreter that runs its script. */
#ifndef JAIL_ZYGOTE_BIRTH_H
#define JAIL_ZYGOTE_BIRTH_H

#include "keeper/jail.h"

/*
 * In the master; the process number, -1 on failure. `line` is the master's end and its own,
 * `output` takes what it prints, `requests` is the zygotes' end of the template's pair.
 */
pid_t zygote_birth(const struct jail_config *config, const struct zygote_options *own, const int line[2], int output,
		   int requests);

#endif
