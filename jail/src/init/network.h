/*
 * The network namespaces of slots. One is made when a slot is first used and serves one run at a time: making one costs
 * more than anything else of a jail. All that a program can do there is to make AF_UNIX sockets, so nothing of it is left in a
 * namespace without sockets; a keeper enters none that the kernel does not say this of.
 *
 * Of /proc/net programs can read what the kernel keeps for each namespace alone. Other entries have no permission bits,
 * those included that a module brought after the namespace was made.
 */
#ifndef JAIL_NETWORK_H
#define JAIL_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

/* Master. An empty namespace that belongs to a user namespace, -1 and errno on failure. */
int network_make(int userns);

/* Keeper. Enters the slot's namespace when nobody else can be met there, and otherwise a new one; -1 and errno on failure. */
int network_enter(int network, int host_proc);

/*
 * Takes the permissions of all entries of an open /proc/net from programs, but for those that they may read: as long as the
 * namespace lives. `net` is given up. -1 and errno on failure.
 */
int network_hide(int net);

/* A fingerprint of the names in a directory. -1 and errno on failure. */
int network_names(int net, uint64_t *names);

/* Whether the kernel's statistics, as they stand in /proc/net/sockstat, say that there is no socket of any kind. */
bool network_text_is_empty(const char *text);

#endif
