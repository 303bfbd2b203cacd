/*
 * pid 1 of the jail. Until the step USER_NS it is root of jaild's user namespace, in namespaces of its own. From VERIFY
 * on it has the privileges of the program and no more. It trusts the keeper and uses nothing that a program made.
 */
#include "init/confine.h"
#include "init/program.h"
#include "init/template.h"
#include "keeper/jail.h"
#include "lib/step.h"
#include "lib/sys.h"
#include "lib/title.h"
#include "lib/util.h"
#include "master/oom.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM_STACK 65536 /* for the program's process until its exec */

static int make_proc_read_only(void)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};

	return sys_mount_setattr(AT_FDCWD, "/proc", AT_RECURSIVE, &attributes);
}

static int wait_for_map(int control, int locks)
{
	struct message message = {.kind = MESSAGE_USER_NS, .locks = locks};

	if (send(control, &message, sizeof(message), MSG_NOSIGNAL) < 0)
		return -1;
	if (recv(control, &message, sizeof(message), 0) != (ssize_t)sizeof(message) ||
	    message.kind != MESSAGE_MAPPED) {
		errno = EPIPE;
		return -1;
	}
	return 0;
}

/*
 * Writes through the jail's own /proc, opened before it was covered. In a shared /proc every user namespace of the machine
 * adds entries of these names, and the kernel searches them one by one.
 */
static int forbid_namespaces(int bare_proc)
{
	static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"};
	int settings = openat(bare_proc, "sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[64];

	if (settings < 0)
		return -1;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		snprintf(path, sizeof(path), "max_%s_namespaces", kinds[i]);
		if (write_file_at(settings, path, "0") < 0)
			return -1;
	}
	close(settings);
	return 0;
}

/*
 * Sets the parent death signal again, because a uid change clears it. If the keeper has died in between, init sees the end
 * of the control channel. Init also becomes undumpable: no process can open its /proc entries any more, but those that the
 * keeper has open stay usable.
 */
static int tie_to_keeper(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -1 : prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Reaps everything; the end of the program is the end of the jail. */
static _Noreturn void wait_for_program(pid_t program)
{
	int status;

	for (;;) {
		pid_t pid = wait4(-1, &status, __WALL, NULL);

		if (pid == program) {
			(void)write_all(FD_STATUS, &status, sizeof(status));
			_exit(0);
		}
		if (pid < 0 && errno != EINTR)
			_exit(1);
	}
}

static int arrange_descriptors(const struct jail_plan *plan)
{
	const int wanted[CONFINED_FDS] = {plan->status, plan->control, plan->stream[STREAM_OUT],
					  plan->stream[STREAM_ERR], plan->stdin_data, plan->job,
					  plan->config->prestarted_object};

	return confine_descriptors(wanted);
}

/* Fails at the end of the channel. Without this report the keeper would take the end for the start of the program. */
static int receive_command(struct message *message)
{
	ssize_t n = recv(FD_CONTROL, message, sizeof(*message), 0);

	if (n >= 0)
		errno = EPROTO;
	return n == (ssize_t)sizeof(*message) && (message->kind == MESSAGE_GO || message->kind == MESSAGE_ADOPT ||
						  message->kind == MESSAGE_PRESTART)
		       ? 0
		       : -1;
}

static int become_program(void *command)
{
	const struct message *message = command;

	if (message->kind == MESSAGE_PRESTART)
		program_prestart(message);
	program_main(message);
}

/* Like vfork: the child runs in init's memory, while init waits, until its exec. No page tables are copied. */
static pid_t spawn_program(struct message *message)
{
	static _Alignas(16) char stack[PROGRAM_STACK];

	return clone(become_program, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, message);
}

/* Waits for the keeper's command. Spawns the program's process for a job or a pre-start, and adopts the copy of a zygote. */
static pid_t await_program(void)
{
	struct message message = {.kind = MESSAGE_READY};
	pid_t program;

	if (send(FD_CONTROL, &message, sizeof(message), MSG_NOSIGNAL) < 0)
		_exit(126);
	MUST(FD_CONTROL, JOB, receive_command(&message));
	if (message.kind == MESSAGE_ADOPT)
		return FIRST_PROGRAM;
	MUST(FD_CONTROL, FORK, program = spawn_program(&message));
	return program;
}

_Noreturn void init_main(const struct jail_plan *plan)
{
	int bare_proc, locks;
	pid_t program;

	close(plan->keeper_control[0]);
	close(plan->keeper_control[1]);
	MUST(plan->control, PARENT_DEATH, prctl(PR_SET_PDEATHSIG, SIGKILL));
	MUST(plan->control, CGROUP_JOIN, cgroup_join(plan->cgroup));
	MUST(plan->control, CGROUP_NS, unshare(CLONE_NEWCGROUP));
	MUST(plan->control, ROOT, template_enter(plan->config->options, plan->config->slot));
	MUST(plan->control, OOM_SCORE, oom_kill_first());
	MUST(plan->control, PROC, bare_proc = sys_open_tree(AT_FDCWD, "/proc"));
	MUST(plan->control, LOCKS, locks = open("/proc/locks", O_RDONLY | O_CLOEXEC));
	MUST(plan->control, COVER, sys_move_mount(plan->facts, FACTS_PATH));
	MUST(plan->control, COVER, proc_cover());
	MUST(plan->control, PROC_READ_ONLY, make_proc_read_only());
	MUST(plan->control, TMP, sys_move_mount(plan->tmp, "/tmp"));
	MUST(plan->control, SHM, sys_move_mount(plan->shm, "/dev/shm"));
	MUST(plan->control, WORKSPACE, sys_move_mount(plan->workspace, JOB_DIRECTORY));
	MUST(plan->control, WORKSPACE, chdir(JOB_DIRECTORY));
	MUST(plan->control, HOSTNAME, sethostname(HOSTNAME, strlen(HOSTNAME)));
	MUST(plan->control, HOSTNAME, setdomainname("(none)", strlen("(none)")));
	MUST(plan->control, RLIMITS, confine_limits());
	MUST(plan->control, GROUPS, setgroups(0, NULL));
	MUST(plan->control, USER_NS, unshare(CLONE_NEWUSER));
	MUST(plan->control, USER_MAP, wait_for_map(plan->control, locks));
	MUST(plan->control, NS_LIMITS, forbid_namespaces(bare_proc));
	confine_identity(plan->control, 1);
	MUST(plan->control, PARENT_DEATH, tie_to_keeper());
	umask(022);
	title_set("init");
	MUST(plan->control, CLOSE, arrange_descriptors(plan));
	MUST(FD_CONTROL, SECCOMP, seccomp_load(plan->config->policy));
	program = await_program();
	/* The keeper sees the program begin only when init has closed its end of the channel, too. */
	if (sys_close_range(FD_CONTROL, ~0u, 0) < 0)
		_exit(1);
	wait_for_program(program);
}
