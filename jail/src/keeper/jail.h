/*
 * Theory of operation
 *
 * Four kinds of process, each with less power than the one before. Only the first is root of the host, and only there. All
 * others live in a user namespace of jaild's own (userns.h), whose root is an id of the host that owns nothing.
 *
 * master   root in the host's namespaces. Parses the command line, makes the
 *          user namespace, the template namespace and the control groups, forks keepers and reaps
 *          them. Reads nothing from the socket or from any run, and from a keeper
 *          only lines for the log and whether it is paused (journal.h). Once it
 *          runs it has three capabilities, over files, and is bound to host_policy.h, and so is
 *          everything below it. Its id owns the user namespace, so its forks enter that without any.
 * keeper   one per slot and run, a fresh fork of the master. It opens its control files and enters the
 *          user namespace, as root of it, the template's mount namespace and the empty network namespace of its
 *          own jail (network.h). It prepares the whole jail before it accepts a connection,
 *          then keeps three capabilities there (file ownership and modes), the system
 *          calls of keeper_policy.h, open control files of its slot and the jail's
 *          own /proc; it talks to the client, stages, watches, pauses, harvests,
 *          and ends. It can signal the processes of its jail, which its user id owns
 *          the user namespace of, and nothing of the host. Nothing of a run survives in it.
 * init     pid 1 of the jail. Born in fresh mount, pid, ipc, uts and cgroup
 *          namespaces, it makes the mounts and enters a fresh user
 *          namespace last: those namespaces stay property of jaild's user
 *          namespace, and nothing inside can ever gain power over them. Then it
 *          is the job's uid without capabilities, under the system call policy.
 *          When the job is there it makes the program's process, reports its wait
 *          status on a pipe that only it holds, and exits: the kernel kills what
 *          is left.
 * program  inherits init's confinement and becomes the program; or is a copy of a
 *          zygote (zygote.h) that went through the same confinement. An interpreter
 *          may be pre-started and wait, as the program's process, for its job.
 *
 * Beside them stand zygotes, children of the master that never meet a run; zygote.h
 * says what they may do. A keeper whose client requests a warm start sends one of
 * them the descriptors of its jail, and waits for a message of the copy.
 *
 * A run can be paused: all of it but the keeper is frozen, init too, and the keeper
 * sleeps until its client speaks or leaves. What is frozen on v1 dies only when it
 * is thawed, so the process that kills it thaws it: the keeper, also when the master dies;
 * the master when the keeper was killed; the next master when both were.
 *
 * Death runs downwards: when the master dies the kernel kills the keepers, when
 * a keeper dies it kills init, and with init goes the pid namespace. A keeper that
 * ends a run does not rest on init, which a run may keep from a processor: where it
 * is not dead at once the keeper kills every process of the jail (members.h). It
 * looks at the workspace only after it has reaped init, that is, when no process
 * of the run exists any more. The workspace is an unnamed tmpfs that the keeper
 * holds by descriptor; the last close frees it.
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
	bool has_program; /* it waits for its job */
	uint32_t warm_word; /* from its zygote, for the client */
	int ends[PROGRAM_ENDS]; /* the program's side; -1 when they are closed */
	int status;	/* the program's wait status */
	int stream[2];	/* read ends of stdout and stderr */
	int job;	/* arguments and environment, see program.h */
	int stdin_data; /* what the program will read */
	int workspace, tmp, shm;
	int facts[FACT_FILES];
	int proc; /* the jail's own /proc, which shows nothing but its processes */
	int locks; /* the list of their locks, which is covered in it */
	int namespaces[NAMESPACES]; /* for the process that is to be copied into it, see zygote_wire.h */
	int mounts; /* their mount namespace: it goes when this is closed, and not while somebody waits for the end of a run */
	uid_t uid;
	gid_t gid;
	struct cgroup cgroup;
};

/* The ends that init inherits. */
struct jail_plan {
	const struct jail_config *config;
	const struct cgroup *cgroup;
	int host_proc;
	int keeper_control[2]; /* the keeper's ends: as long as init holds one, the keeper's death does not show */
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

/* The program's side belongs to its process alone from here on. */
void jail_close_ends(struct jail *jail);

/* Kills the jail and waits until no process of it exists; false after a minute. */
bool jail_end(struct jail *jail);

/*
 * Stops and restarts every process of the jail. While it stands still a keeper that
 * loses its master takes the jail with it, as always.
 */
int jail_freeze(struct jail *jail);
int jail_thaw(struct jail *jail);

/* pid 1 of the jail. */
_Noreturn void init_main(const struct jail_plan *plan);

#endif
