/* The keeper: one slot, one jail, one connection, then it ends. See jail.h. */
#ifndef JAIL_KEEPER_H
#define JAIL_KEEPER_H

#include "keeper/jail.h"

/* Status of a keeper that could not prepare a jail: the master waits before it tries again. */
#define KEEPER_UNPREPARED 3

_Noreturn void keeper_main(const struct jail_config *config, int listener, pid_t master);

#endif
