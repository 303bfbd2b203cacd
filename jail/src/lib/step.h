/*
 * The steps that make a jail, in order. A step that fails ends the preparation: the process reports the step and its
 * errno to the keeper, and the program never runs.
 */
#ifndef JAIL_STEP_H
#define JAIL_STEP_H

#define JAIL_STEPS(X)                                                    \
	X(CGROUP_JOIN, "join the control groups")                       \
	X(CGROUP_NS, "leave the view of other control groups")          \
	X(ROOT, "make the root of the jail")                            \
	X(PROC, "mount /proc")                                          \
	X(OOM_SCORE, "be the first to go when memory is short")           \
	X(LOCKS, "open the list of locks")                               \
	X(COVER, "hide the host's entries of /proc")                    \
	X(PROC_READ_ONLY, "make /proc read-only")                       \
	X(TMP, "mount /tmp")                                            \
	X(SHM, "mount /dev/shm")                                        \
	X(WORKSPACE, "mount the workspace")                             \
	X(HOSTNAME, "set the host name")                                \
	X(RLIMITS, "set the base resource limits")                      \
	X(GROUPS, "drop supplementary groups")                          \
	X(USER_NS, "enter the user namespace")                          \
	X(USER_MAP, "wait for the user map")                            \
	X(NS_LIMITS, "forbid further namespaces")                       \
	X(BOUNDING_SET, "empty the capability bounding set")            \
	X(SECURE_BITS, "lock the secure bits")                          \
	X(IDENTITY, "take the uid and gid of the job")                  \
	X(CAPABILITIES, "drop all capabilities")                        \
	X(PARENT_DEATH, "tie the life of the jail to its keeper")       \
	X(NO_NEW_PRIVS, "set no_new_privs")                             \
	X(VERIFY, "verify the confinement")                             \
	X(SECCOMP, "load the system call policy")                       \
	X(ENTER, "enter the jail")                                      \
	X(FORK, "fork the program's process")                           \
	X(STREAMS, "connect the streams")                               \
	X(SIGNALS, "reset the signals")                                 \
	X(SESSION, "make a session")                                    \
	X(JOB, "read the job")                                          \
	X(RUN_LIMITS, "set the resource limits of the run")             \
	X(CLOSE, "close all other descriptors")

enum step {
	STEP_NONE,
#define X(name, text) STEP_##name,
	JAIL_STEPS(X)
#undef X
};

const char *step_text(int step);

#endif
