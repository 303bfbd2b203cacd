/* The bounding set of the calling process: the capabilities that an exec may give it. */
#ifndef JAIL_CAPABILITY_H
#define JAIL_CAPABILITY_H

#include <linux/capability.h>
#include <stdint.h>

/* What a zygote keeps: to enter the namespaces of a jail, as owner of the host's, and by their root. */
#define ZYGOTE_CAPABILITIES (1u << CAP_SYS_ADMIN | 1u << CAP_SYS_CHROOT)

/* What a keeper keeps: ownership and modes of staged files, and entry into directories that a run closed. */
#define KEEPER_CAPABILITIES (1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER)

/*
 * What the master keeps, for itself and for what it makes: those two, the making of keepers and jails (maps of user ids,
 * raised limits, the removal of the bounding set, a look at namespaces) and the end of what is left in its control groups.
 */
#define MASTER_CAPABILITIES                                                                                              \
	(ZYGOTE_CAPABILITIES | KEEPER_CAPABILITIES | 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SETPCAP |           \
	 1u << CAP_SYS_RESOURCE | 1u << CAP_SYS_PTRACE | 1u << CAP_KILL)

/* Holds these, of those that it holds, and no others; the inheritable and ambient sets are empty. -1 on failure. */
int capabilities_keep(uint32_t kept);

/* Each drop makes new credentials, so a set that may be small is asked for every capability first. -1: one stays. */
int bounding_set_keep(uint64_t kept);

/* The same for a set that is full, as that of every process is that enters a user namespace. */
int bounding_set_empty(void);

/* 0 when the kernel says of each capability that it knows that it is not in the set. */
int bounding_set_is_empty(void);

#endif
