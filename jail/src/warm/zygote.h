/*
 * Zygotes are fork servers: processes that have started an interpreter and done its imports, and copy
 * themselves into jails. The master starts and reaps them. Several generations of one
 * template may live at once; an old one ends when a new one is ready.
 *
 * A zygote lives outside of all jails, in a mount namespace whose root is the image, in
 * empty network, ipc and uts namespaces, with the environment of a program, no secret and
 * no file but its own. In jaild's user namespace (userns.h) it keeps two capabilities, because its copies must
 * enter jails: they lose them before anything of a job is read (enter.c). On the host it has none. From before its
 * interpreter starts it is bound to a policy of its own (zygote_policy.h). It reads
 * nothing from clients or runs: requests come from keepers and hold descriptors only.
 */
#ifndef JAIL_ZYGOTE_H
#define JAIL_ZYGOTE_H

#include "keeper/jail.h"

#include <poll.h>
#include <stdbool.h>

/* How a keeper reaches the zygotes of one template. */
struct zygote_door {
	int requests;
	const int *ready; /* shared with the master: how many there are */
};

#define ZYGOTE_POLLS(zygotes) (4u * (zygotes))

bool zygote_is_ready(const struct zygote_door *door);

/* Keeper: closes the descriptors that belong to master and zygotes. */
void zygotes_close_inherited(void);

/* Master. Fatal on failure; the doors live as long as the master. */
const struct zygote_door *zygotes_open(const struct options *options);

/* Starts, replaces and ends generations when they are due. The milliseconds until the next call; -1: none. */
int zygotes_manage(const struct jail_config *config);
/* The descriptors to poll, and the handler of their events. */
unsigned zygotes_poll(struct pollfd *polls);
void zygotes_on_readable(const struct pollfd *polls, unsigned count);
/* A child was reaped; true when it was a zygote. */
bool zygotes_on_exit(pid_t pid);
void zygotes_end(void);

#endif
