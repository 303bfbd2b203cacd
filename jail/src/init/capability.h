/* The bounding set of the calling process: the capabilities that an exec may give it. */
#ifndef JAIL_CAPABILITY_H
#define JAIL_CAPABILITY_H

#include <linux/capability.h>
#include <stdint.h>

/* What a zygote keeps, of the user namespace's: to enter the namespaces of a jail. */
#define ZYGOTE_CAPABILITIES (1u << CAP_SYS_ADMIN | 1u << CAP_SYS_CHROOT)

/*
 * Ownership and modes of files. A keeper keeps it for staged files and for directories that a run closed, the master for control
 * groups and the tool directory: what it makes takes its power from the user namespace, which belongs to the master's id.
 */
#define FILE_CAPABILITIES (1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER)

/* Holds these, of those that it holds, and no others; the inheritable and ambient sets are empty. -1 on failure. */
int capabilities_keep(uint32_t kept);

/* Each drop makes new credentials, so a set that may be small is asked for every capability first. -1: one stays. */
int bounding_set_keep(uint64_t kept);

/* The same for a set that is full, as that of every process is that enters a user namespace. */
int bounding_set_empty(void);

/* 0 when the kernel says of each capability that it knows that it is not in the set. */
int bounding_set_is_empty(void);

#endif
