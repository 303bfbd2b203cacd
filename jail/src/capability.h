/* The bounding set of the calling process: the capabilities that an exec may give it. */
#ifndef JAIL_CAPABILITY_H
#define JAIL_CAPABILITY_H

#include <linux/capability.h>
#include <stdint.h>

/* What a zygote keeps: to enter the namespaces of a jail, as owner of the host's, by their root, and by way of its first process. */
#define ZYGOTE_CAPABILITIES (1u << CAP_SYS_ADMIN | 1u << CAP_SYS_CHROOT | 1u << CAP_SYS_PTRACE)

/* Each drop makes new credentials, so a set that may be small is asked for every capability first. -1: one stays. */
int bounding_set_keep(uint64_t kept);

/* The same for a set that is full, as that of every process is that enters a user namespace. */
int bounding_set_empty(void);

/* 0 when the kernel says of each capability that it knows that it is not in the set. */
int bounding_set_is_empty(void);

#endif
