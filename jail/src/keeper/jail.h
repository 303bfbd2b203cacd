/*
 * Theory of operation
 *
 * There are four kinds of process, each with fewer privileges than the one before. Only the first is root of the host, and
 * only there. All others live in a user namespace of jaild's own (userns.h), whose root is a host id that owns nothing.
 *
 * master   root in the host's namespaces. It parses the command line, makes the user namespace, the template namespace and the
 *          control groups, forks keepers and reaps them. It reads nothing from the socket or from any run. From a keeper it reads
 *          only lines for the log and whether its run is paused (journal.h). Once it runs, it has three capabilities, over files.
 *          It and everything below it are bound to host_policy.h. Its id owns the user namespace, so processes that it forks enter
 *          that namespace without any capability.
 * keeper   one per slot and run, a fresh fork of the master. It opens the control files of its slot. It enters the user namespace
 *          as its root, then the template's mount namespace and an empty network namespace for its jail (network.h). It prepares
 *          the whole jail before it accepts a connection. Then it keeps three capabilities there (file ownership and modes), the
 *          system calls of keeper_policy.h, the open control files of its slot and the jail's own /proc. It talks to the client,
 *          stages, watches, pauses, harvests, and ends. It can signal the processes of its jail, because its user id owns their
 *          user namespace, and no process of the host. Nothing of a run survives in it.
 * init     pid 1 of the jail. It starts in new mount, pid, ipc, uts and cgroup namespaces, makes the mounts, and enters a new user
 *          namespace last. So jaild's user namespace still owns those namespaces, and nothing inside can ever gain privileges over
 *          them. From then on it has the job's uid, no capabilities, and the system call policy. When the job arrives, it makes
 *          the program's process. It reports the program's wait status on a pipe that only it holds, and exits: the kernel then
 *          kills what is left.
 * program  inherits init's confinement and becomes the program; or is a copy of a zygote (zygote.h) that went through the same
 *          confinement. An interpreter may be pre-started: it is the program's process, and waits for its job.
 *
 * Zygotes are children of the master beside these. They never meet a run; zygote.h says what they may do. A keeper whose
 * client requests a warm start sends one of them the descriptors of its jail, and waits for a message from the copy.
 *
 * A run can be paused: all of its processes are frozen, init too, and the keeper sleeps until its client sends a frame or
 * leaves. On cgroup v1 a frozen process dies only after it is thawed, so whoever kills it must thaw it: the keeper, also
 * when the master dies; the master when the keeper was killed; the next master when both were.
 *
 * Death propagates downwards. When the master dies, the kernel kills the keepers. When a keeper dies, the kernel kills
 * init, and with init the whole pid namespace. A keeper that ends a run does not rely on init, because a run may keep init
 * from a processor: if init is not dead at once, the keeper kills every process of the jail (members.h). It reads the
 * workspace only after it has reaped init, when no process of the run exists any more. The workspace is an unnamed tmpfs
 * that the keeper holds by descriptor; the last close frees it.
 */
#ifndef JAIL_JAIL_H
#define JAIL_JAIL_H

#include "cgroup/cgroup.h"
#include "init/proc.h"
#include "master/options.h"
#include "seccomp/seccomp.h"
#include "warm/zygote_wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define JOB_UID 1000 /* as the program sees it */
#define JOB_GID 1000
#define STREAM_OUT 0
#define STREAM_ERR 1
#define HOSTNAME "sandbox"
#define FIRST_PROGRAM 2 /* process number of every program */

/* What a keeper needs from the master; the same for every run of the slot. */
struct jail_config {
	const struct options *options;
	const struct seccomp_program *policy, *keeper_policy;
	unsigned slot;
	int template;
	int userns; /* see userns.h */
	int network; /* the slot's network namespace; -1: none */
	int journal; /* to the master, see journal.h */
	int prestarted_object; /* what pre-started interpreters load, see prestarted.h */
	const struct zygote_queue *queues; /* one for each template of the options */
};

/* The program's side of the channels, kept until the keeper knows how the program starts. */
enum { END_CONTROL, END_OUT, END_ERR, END_STDIN, PROGRAM_ENDS };

/* A prepared jail, as its keeper holds it. */
struct jail {
	unsigned slot;
	pid_t init;
	int pidfd;
	bool ended; /* no process of it exists */
	int control;	/* messages with init, then with the program's process; ends when the program begins */
	int warm_control; /* the same for a program's process that is born warm */
	bool has_program; /* the program's process exists and waits for its job */
	uint32_t warm_word; /* from its zygote, for the client */
	int ends[PROGRAM_ENDS]; /* the program's side; -1 when they are closed */
	int status;	/* the program's wait status */
	int stream[2];	/* read ends of stdout and stderr */
	int job;	/* arguments and environment, see program.h */
	int stdin_data; /* what the program will read */
	int workspace, tmp, shm;
	int facts[FACT_FILES];
	int proc; /* the jail's own /proc, which shows nothing but its processes */
	int locks; /* the list of their locks, which is covered in `proc` */
	int namespaces[NAMESPACES]; /* for the copy of a zygote, see zygote_wire.h */
	int mounts; /* keeps the mount namespace alive; closed only when nobody waits for the end of the run any more */
	uid_t uid;
	gid_t gid;
	struct cgroup cgroup;
};

/* The ends that init inherits. */
struct jail_plan {
	const struct jail_config *config;
	const struct cgroup *cgroup;
	int host_proc;
	int keeper_control[2]; /* the keeper's ends: while init holds one, it cannot notice the keeper's death */
	int control, status, stream[2], stdin_data, job;
	int workspace, tmp, shm, facts;
};

enum message_kind {
	MESSAGE_FAILED, MESSAGE_USER_NS, MESSAGE_MAPPED, MESSAGE_READY,
	MESSAGE_GO,	     /* a job: to init, or to a program's process that was born warm */
	MESSAGE_PRESTART,    /* to init: an interpreter to start before its job */
	MESSAGE_ADOPT,	     /* to init: the program's process was born warm */
	MESSAGE_WARM,	     /* the program begins without an exec */
	MESSAGE_EXEC_FAILED,
};

/* The only thing that goes over the control channel. */
struct message {
	enum message_kind kind;
	int step, error;
	int locks; /* MESSAGE_USER_NS: init's descriptor */
	uint32_t argc, envc;
	uint64_t job_size, open_files, file_size_bytes, pids;
	bool has_stdin;
	uint32_t word; /* of MESSAGE_READY: for the client, from the zygote */
};

/* In a keeper: builds everything up to the init that waits for a job. Logs and returns -1 on failure. */
int jail_prepare(struct jail *jail, const struct jail_config *config);

/* Closes the program's side of the channels: from here on only the program's process holds it. */
void jail_close_ends(struct jail *jail);

/* Kills the jail and waits until no process of it exists; false after a minute. */
bool jail_end(struct jail *jail);

/* Freezes and thaws every process of the jail. Meanwhile, too, a keeper that loses its master takes the jail with it. */
int jail_freeze(struct jail *jail);
int jail_thaw(struct jail *jail);

/* pid 1 of the jail. */
_Noreturn void init_main(const struct jail_plan *plan);

#endif
