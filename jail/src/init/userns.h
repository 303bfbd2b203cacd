/*
 * The user namespace of everything below the master. Its root is an id of the host that nothing else has, and the
 * ids of slots are in it what they are on the host; no other id of the host exists in it. All namespaces of jails are
 * made in it and belong to it, so its root has power over them, and over nothing of the host.
 */
#ifndef JAIL_USERNS_H
#define JAIL_USERNS_H

#include "master/options.h"

/* Host ids of its root; the id base leaves room for it. */
uid_t userns_uid(const struct options *options);
gid_t userns_gid(const struct options *options);

/* Master, at its start: maps the ids of a process that has just made the namespace. -1 and errno on failure. */
int userns_map(pid_t pid, const struct options *options);

/* A process of one thread, made by the master: becomes root there, with all capabilities there and none elsewhere. */
int userns_enter(int userns);
/* The second half of that. */
int userns_become_root(void);

#endif
