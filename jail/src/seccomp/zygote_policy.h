/*
 * What a zygote may call beyond the policy of programs, as data: its copies become programs, so it is bound to all that these
 * are, and to host_policy.h. It has what a copy needs to enter a jail and to confine itself there.
 *
 * A zygote has capabilities, in jaild's user namespace, while it imports the image's libraries. So it cannot mount, and setns
 * takes namespaces only that it was given a descriptor of: a flag would let it in by any process of that namespace.
 *
 * Only seccomp.c and the tests include this file.
 */
#ifndef JAIL_ZYGOTE_POLICY_H
#define JAIL_ZYGOTE_POLICY_H

#include "seccomp/policy.h"

static const char *const zygote_allowed[] = {
	/* It chooses the process number, and on cgroup v2 the group. Its arguments are in memory, where no policy sees them. */
	"clone3",
	/* The policy of programs. */
	"seccomp",
	/* The bounding set, the secure bits. */
	"prctl",
	/* Limits of the run. */
	"prlimit64", "setrlimit",
};

static const struct policy_line zygote_checked[] = {
	{"setns", EPERM, {OK(1, 0)}},
	/* Fails where there is a second thread, and does nothing else. */
	{"unshare", EPERM, {OK(0, 0x10000 /* CLONE_THREAD */)}},
};

#endif
