/*
 * The network namespaces of slots. A slot gets one at its first use and reuses it for one run at a time, because making a
 * namespace is the most expensive part of a jail. A program can only make AF_UNIX sockets there, so a namespace without
 * sockets holds no state of earlier runs. A keeper enters a namespace only when the kernel reports no sockets in it.
 *
 * In /proc/net programs can read the entries whose content belongs to the namespace alone. All others have no permission
 * bits, including those that a kernel module adds later.
 */
#ifndef JAIL_NETWORK_H
#define JAIL_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

/* Master. An empty namespace that belongs to a user namespace, -1 and errno on failure. */
int network_make(int userns);

/* Keeper. Enters the slot's namespace if it has no sockets, otherwise a new one; -1 and errno on failure. */
int network_enter(int network, int host_proc);

/*
 * Clears the permission bits of all entries of an open /proc/net that programs may not read, for the life of the namespace.
 * Closes `net`. -1 and errno on failure.
 */
int network_hide(int net);

/* A fingerprint of the names in a directory. -1 and errno on failure. */
int network_names(int net, uint64_t *names);

/* Whether this text of /proc/net/sockstat reports no socket of any kind. */
bool network_text_is_empty(const char *text);

#endif
