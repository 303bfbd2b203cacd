/* The capability sets of the calling process; the bounding set limits what an exec may add. */
#ifndef JAIL_CAPABILITY_H
#define JAIL_CAPABILITY_H

#include <linux/capability.h>
#include <stdint.h>

/* The capabilities of a zygote in jaild's user namespace: it needs them to enter the namespaces of a jail. */
#define ZYGOTE_CAPABILITIES (1u << CAP_SYS_ADMIN | 1u << CAP_SYS_CHROOT)

/*
 * Ownership and modes of files. A keeper needs them for staged files and for directories that a run made unreadable, the
 * master for control groups and the tool directory. Processes that the master forks get their other capabilities from the
 * user namespace, which the master's id owns.
 */
#define FILE_CAPABILITIES (1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER)

/* Drops all other capabilities and empties the inheritable and ambient sets. -1 on failure. */
int capabilities_keep(uint32_t kept);

/*
 * Drops all other capabilities from the bounding set; -1 when one cannot be dropped. Each drop allocates new credentials,
 * so this function drops only those that are in the set. It is meant for sets that may be small.
 */
int bounding_set_keep(uint64_t kept);

/* Empties a full set. Every process that enters a user namespace has one. */
int bounding_set_empty(void);

/* 0 when the kernel reports every capability as dropped. */
int bounding_set_is_empty(void);

#endif
