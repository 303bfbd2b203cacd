/*
 * Zygotes: processes that have started an interpreter and paid its imports, and copy
 * themselves into jails. Made and buried by the master; several generations of one
 * template may live at once, and a new one takes over before an old one goes.
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

/* A keeper's way to the zygotes of one template. */
struct zygote_door {
	int requests;
	const int *ready; /* shared with the master: how many there are */
};

#define ZYGOTE_POLLS(zygotes) (4u * (zygotes))

bool zygote_is_ready(const struct zygote_door *door);

/* Keeper: lets go of what belongs to master and zygotes. */
void zygotes_forget(void);

/* Master. Fatal on failure; the doors live as long as the master. */
const struct zygote_door *zygotes_open(const struct options *options);

/* Starts, replaces and ends generations as it is due; the time until the next look, -1 for none. */
int zygotes_manage(const struct jail_config *config);
/* What to wait for, and what to do when it came. */
unsigned zygotes_watch(struct pollfd *polls);
void zygotes_hear(const struct pollfd *polls, unsigned count);
/* True when the dead child was a zygote. */
bool zygotes_bury(pid_t pid);
void zygotes_end(void);

#endif
