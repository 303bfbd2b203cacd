/* The keeper: one slot, one jail, one connection, then it ends. See jail.h. */
#ifndef JAIL_KEEPER_H
#define JAIL_KEEPER_H

#include "keeper/jail.h"

/* Exit status of a keeper that could not prepare a jail: the master delays its next attempt. */
#define KEEPER_UNPREPARED 3

_Noreturn void keeper_main(const struct jail_config *config, int listener, pid_t master);

#endif
