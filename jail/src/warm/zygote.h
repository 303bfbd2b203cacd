/*
 * Zygotes are fork servers: processes that have started an interpreter, done its imports, and copy themselves into jails.
 * The master starts and reaps them. Several generations of one template may live at once; an old one ends when its
 * successor is ready.
 *
 * A zygote runs outside all jails, in a mount namespace whose root is the image, in empty network, ipc and uts namespaces,
 * with the environment of a program, no secret and no file but its own. In jaild's user namespace (userns.h) it keeps two
 * capabilities, which its copies need to enter jails and drop before they read any byte of a job (enter.c). On the host it
 * has none. Its own system call policy (zygote_policy.h) is loaded before its interpreter starts. It reads nothing from
 * clients or runs: requests come from keepers and contain descriptors only.
 */
#ifndef JAIL_ZYGOTE_H
#define JAIL_ZYGOTE_H

#include "keeper/jail.h"

#include <poll.h>
#include <stdbool.h>

/* The request queue of one template's zygotes, as keepers use it. */
struct zygote_queue {
	int requests;
	const int *ready; /* number of ready zygotes, shared with the master */
};

#define ZYGOTE_POLLS(zygotes) (4u * (zygotes))

bool zygote_is_ready(const struct zygote_queue *queue);

/* Keeper: closes the descriptors that belong to master and zygotes. */
void zygotes_close_inherited(void);

/* Master. Fatal on failure; the queues live as long as the master. */
const struct zygote_queue *zygotes_open(const struct options *options);

/* Starts, replaces and ends generations when due. Returns the milliseconds until the next call; -1: none. */
int zygotes_manage(const struct jail_config *config);
/* The descriptors to poll, and the handler of their events. */
unsigned zygotes_poll(struct pollfd *polls);
void zygotes_on_readable(const struct pollfd *polls, unsigned count);
/* A child was reaped; true when it was a zygote. */
bool zygotes_on_exit(pid_t pid);
void zygotes_end(void);

#endif
