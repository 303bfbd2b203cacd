/*
 * The system calls that a zygote may make beyond the policy of programs, as data. Its copies become programs, so it is
 * bound to the policy of programs and to host_policy.h as well. It needs these calls so that a copy can enter a jail and
 * confine itself there.
 *
 * A zygote has capabilities in jaild's user namespace while it imports the image's libraries. So it cannot mount, and setns
 * accepts only namespaces of which it was given a descriptor: a flag would let it enter by any process of that namespace.
 *
 * Only seccomp.c and the tests include this file.
 */
#ifndef JAIL_ZYGOTE_POLICY_H
#define JAIL_ZYGOTE_POLICY_H

#include "seccomp/policy.h"

static const char *const zygote_allowed[] = {
	/* Chooses the process number, and on cgroup v2 the group. Its arguments are in memory, where no policy can inspect them. */
	"clone3",
	/* Loads the policy of programs. */
	"seccomp",
	/* Empties the bounding set and locks the secure bits. */
	"prctl",
	/* Sets the resource limits. */
	"prlimit64", "setrlimit",
};

static const struct policy_line zygote_checked[] = {
	{"setns", EPERM, {OK(1, 0)}},
	/* With this flag unshare only checks: it fails when there is a second thread. */
	{"unshare", EPERM, {OK(0, 0x10000 /* CLONE_THREAD */)}},
};

#endif
