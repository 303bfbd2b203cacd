/*
 * The user namespace of all processes below the master. It maps its root to an otherwise unused id of the host, and the
 * ids of slots to themselves; no other id of the host exists in it. All namespaces of jails are made in it and belong to
 * it, so its root has capabilities over them and over nothing of the host.
 */
#ifndef JAIL_USERNS_H
#define JAIL_USERNS_H

#include "master/options.h"

/* Host ids of its root; the id base leaves room for it. */
uid_t userns_uid(const struct options *options);
gid_t userns_gid(const struct options *options);

/* Master, at its start: maps the ids of a process that has just made the namespace. -1 and errno on failure. */
int userns_map(pid_t pid, const struct options *options);

/* In a single-threaded child of the master: becomes root of the namespace, with all capabilities there and none elsewhere. */
int userns_enter(int userns);
/* The second half of userns_enter: takes the ids of root. */
int userns_become_root(void);

#endif
