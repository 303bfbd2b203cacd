/* The keeper's half of making a jail; init.c is the other half. */
#include "keeper/jail.h"

#include "files/tooldir.h"
#include "init/network.h"
#include "init/template.h"
#include "init/userns.h"
#include "keeper/members.h"
#include "lib/step.h"
#include "lib/sys.h"
#include "lib/util.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDSHAKE_MS 20000
#define END_MS 60000 /* freeing the kernel resources of a run may take long */
#define INIT_MS 50   /* init usually dies within this time, and its pid namespace with it */
#define STILL_US 20000 /* longest wait for the freezer before processes are killed one by one */
#define PASS_MAX_MS 100
#define SMALL_INODES 16384

static int make_file_systems(struct jail *jail, struct jail_plan *plan, const struct options *o)
{
	const unsigned safe = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	char size[48], inodes[48], uid[32], gid[32];

	snprintf(uid, sizeof(uid), "uid=%u", jail->uid);
	snprintf(gid, sizeof(gid), "gid=%u", jail->gid);
	snprintf(size, sizeof(size), "size=%" PRIu64, o->workspace_bytes);
	snprintf(inodes, sizeof(inodes), "nr_inodes=%" PRIu64, o->workspace_inodes);
	plan->workspace = tmpfs_make((const char *const[]){"mode=755", size, inodes, uid, gid, NULL}, safe);
	if (plan->workspace < 0)
		return -1;
	snprintf(size, sizeof(size), "size=%" PRIu64, o->tmp_bytes);
	snprintf(inodes, sizeof(inodes), "nr_inodes=%d", SMALL_INODES);
	plan->tmp = tmpfs_make((const char *const[]){"mode=1777", size, inodes, NULL}, safe);
	if (plan->tmp < 0)
		return -1;
	snprintf(size, sizeof(size), "size=%" PRIu64, o->shm_bytes);
	plan->shm = tmpfs_make((const char *const[]){"mode=1777", size, inodes, NULL}, safe);
	if (plan->shm < 0)
		return -1;
	plan->facts = tmpfs_make((const char *const[]){"mode=755", "size=65536", "nr_inodes=16", NULL},
				 safe | MOUNT_ATTR_NOEXEC);
	if (plan->facts < 0 || proc_make_facts(plan->facts, jail->facts) < 0)
		return -1;
	jail->workspace = plan->workspace;
	jail->tmp = plan->tmp;
	jail->shm = plan->shm;
	return 0;
}

static int make_stream(int *reader, int *writer, uid_t uid, gid_t gid)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	*reader = ends[0];
	*writer = ends[1];
	/* The program owns the pipe, so it may open /dev/stdout. Writers stay blocking. */
	return fchown(ends[1], uid, gid) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? -1 : 0;
}

/* Called before the network namespace is entered: the run's list of sockets must show only its own. */
static int make_control(struct jail *jail, struct jail_plan *plan)
{
	int ends[2], warm[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, warm) < 0)
		return -1;
	jail->control = plan->keeper_control[0] = ends[0];
	plan->control = ends[1];
	jail->warm_control = plan->keeper_control[1] = warm[0];
	jail->ends[END_CONTROL] = warm[1];
	return 0;
}

static int make_channels(struct jail *jail, struct jail_plan *plan)
{
	char path[64];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	jail->status = ends[0];
	plan->status = ends[1];
	for (int i = 0; i < 2; i++)
		if (make_stream(&jail->stream[i], &plan->stream[i], jail->uid, jail->gid) < 0)
			return -1;
	jail->job = plan->job = memfd_create("job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	jail->stdin_data = memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (jail->job < 0 || jail->stdin_data < 0 || fchmod(jail->stdin_data, 0444) < 0)
		return -1;
	snprintf(path, sizeof(path), "self/fd/%d", jail->stdin_data);
	plan->stdin_data = openat(plan->host_proc, path, O_RDONLY | O_CLOEXEC);
	jail->ends[END_OUT] = plan->stream[STREAM_OUT];
	jail->ends[END_ERR] = plan->stream[STREAM_ERR];
	jail->ends[END_STDIN] = plan->stdin_data;
	return plan->stdin_data;
}

static int clone_init(struct jail *jail, const struct jail_plan *plan)
{
	struct clone_args args = {
		.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&jail->pidfd,
		.exit_signal = SIGCHLD,
	};

	if (jail->cgroup.clone_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)jail->cgroup.clone_fd;
	}
	jail->init = sys_clone3(&args);
	if (jail->init == 0)
		init_main(plan);
	return jail->init;
}

static int receive(const struct jail *jail, enum message_kind expected, struct message *message, int slot)
{
	struct pollfd wait = {.fd = jail->control, .events = POLLIN};

	if (poll(&wait, 1, HANDSHAKE_MS) != 1) {
		log_line(LOG_ERROR, slot, ETIMEDOUT, "the jail's first process does not answer");
		return -1;
	}
	if (recv(jail->control, message, sizeof(*message), 0) != (ssize_t)sizeof(*message)) {
		log_line(LOG_ERROR, slot, 0, "the jail's first process died");
		return -1;
	}
	if (message->kind != expected) {
		log_line(LOG_ERROR, slot, message->error, "cannot %s", step_text(message->step));
		return -1;
	}
	return 0;
}

static int map_user(const struct jail *jail, int host_proc)
{
	char path[64], map[64];

	snprintf(path, sizeof(path), "%d/setgroups", jail->init);
	if (write_file_at(host_proc, path, "deny") < 0)
		return -1;
	snprintf(path, sizeof(path), "%d/uid_map", jail->init);
	snprintf(map, sizeof(map), "%d %u 1\n", JOB_UID, jail->uid);
	if (write_file_at(host_proc, path, map) < 0)
		return -1;
	snprintf(path, sizeof(path), "%d/gid_map", jail->init);
	snprintf(map, sizeof(map), "%d %u 1\n", JOB_GID, jail->gid);
	return write_file_at(host_proc, path, map);
}

/* Enters the template and an empty network namespace. Of the host it keeps only /proc, which the set-up needs. */
static int enter_template(const struct jail_config *config, struct jail_plan *plan)
{
	plan->host_proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	tooldir_forget();
	/*
	 * The change of ids cleared the parent death signal, and made the process and its future init undumpable, so that a
	 * keeper could not open init's /proc entries. Dumpable is safe: other processes of this id may not trace and see no
	 * /proc of the host.
	 */
	if (plan->host_proc < 0 || userns_enter(config->userns) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 || setns(config->template, CLONE_NEWNS) < 0 ||
	    network_enter(config->network, plan->host_proc) < 0)
		return -1;
	return chdir("/");
}

static void close_plan(const struct jail_plan *plan)
{
	const int fds[] = {plan->host_proc, plan->control, plan->status, plan->facts};

	for (size_t i = 0; i < COUNT(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void jail_close_ends(struct jail *jail)
{
	for (size_t i = 0; i < PROGRAM_ENDS; i++) {
		if (jail->ends[i] < 0)
			continue;
		close(jail->ends[i]);
		jail->ends[i] = -1;
	}
}

/* Opens the kernel's /proc/locks through init, which opened it before it was covered. */
static int open_locks(struct jail *jail, int host_proc, const struct message *message)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/fd/%d", jail->init, message->locks);
	jail->locks = openat(host_proc, path, O_RDONLY | O_CLOEXEC);
	return jail->locks;
}

/* Opens the jail's own /proc, which shows exactly the processes of the jail, and its mount namespace. */
static int open_views(struct jail *jail, int host_proc)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/root/proc", jail->init);
	jail->proc = openat(host_proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%d/ns/mnt", jail->init);
	jail->mounts = jail->proc < 0 ? -1 : openat(host_proc, path, O_RDONLY | O_CLOEXEC);
	return jail->mounts;
}

static int open_namespaces(struct jail *jail, int host_proc)
{
	static const char *const names[NAMESPACES] = {"pid", "mnt", "ipc", "uts", "net", "cgroup", "user"};
	char path[64];

	for (size_t i = 0; i < NAMESPACES; i++) {
		snprintf(path, sizeof(path), "%d/ns/%s", jail->init, names[i]);
		jail->namespaces[i] = openat(host_proc, path, O_RDONLY | O_CLOEXEC);
		if (jail->namespaces[i] < 0)
			return -1;
	}
	return 0;
}

int jail_prepare(struct jail *jail, const struct jail_config *config)
{
	const struct message mapped = {.kind = MESSAGE_MAPPED};
	struct jail_plan plan = {.config = config, .cgroup = &jail->cgroup};
	struct message message = {0};
	int slot = (int)config->slot;
	bool opened;

	*jail = (struct jail){
		.slot = config->slot, .uid = config->options->uid_base + config->slot, .gid = config->options->gid_base + config->slot};
	opened = cgroup_open(&jail->cgroup, config->slot) == 0;
	cgroups_forget();
	if (!opened || make_control(jail, &plan) < 0 ||
	    enter_template(config, &plan) < 0 ||
	    make_file_systems(jail, &plan, config->options) < 0 || make_channels(jail, &plan) < 0 ||
	    clone_init(jail, &plan) < 0) {
		log_line(LOG_ERROR, slot, errno, "cannot prepare a jail");
		return -1;
	}
	close(plan.control);
	plan.control = -1;
	if (receive(jail, MESSAGE_USER_NS, &message, slot) < 0)
		return -1;
	if (open_locks(jail, plan.host_proc, &message) < 0 || open_views(jail, plan.host_proc) < 0 ||
	    open_namespaces(jail, plan.host_proc) < 0) {
		log_line(LOG_ERROR, slot, errno, "cannot open the namespaces of a jail");
		return -1;
	}
	if (map_user(jail, plan.host_proc) < 0 ||
	    send(jail->control, &mapped, sizeof(mapped), MSG_NOSIGNAL) < 0) {
		log_line(LOG_ERROR, slot, errno, "cannot map the user of a jail");
		return -1;
	}
	close(config->template);
	close(config->userns);
	if (config->network >= 0)
		close(config->network);
	cgroup_seal(&jail->cgroup);
	if (receive(jail, MESSAGE_READY, &message, slot) < 0)
		return -1;
	close_plan(&plan);
	return 0;
}

/* The frozen jail, which a keeper kills and thaws before it dies with its master. */
static struct jail *frozen;

static void end_frozen(int signal)
{
	(void)signal;
	(void)sys_pidfd_send_signal(frozen->pidfd, SIGKILL);
	(void)freezer_thaw(&frozen->cgroup.freezer);
	_exit(1);
}

static int freeze(struct jail *jail, uint64_t within_us)
{
	frozen = jail;
	if (signal(SIGTERM, end_frozen) == SIG_ERR || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		return -1;
	return freezer_freeze(&jail->cgroup.freezer, within_us);
}

int jail_freeze(struct jail *jail)
{
	return freeze(jail, FREEZE_US);
}

int jail_thaw(struct jail *jail)
{
	if (freezer_thaw(&jail->cgroup.freezer) < 0)
		return -1;
	return prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* In a frozen jail no process can fork between the listing and the kill. If the freeze fails, most processes die all the same. */
static void kill_members(struct jail *jail)
{
	(void)freeze(jail, STILL_US);
	members_kill(jail->proc);
	(void)jail_thaw(jail);
}

/*
 * The death of init kills its pid namespace, but init needs CPU time to die, and the other processes may starve it. So the
 * keeper kills them from outside, repeatedly. True when init is dead.
 */
static bool wait_for_init(struct jail *jail, uint64_t deadline)
{
	struct pollfd dead = {.fd = jail->pidfd, .events = POLLIN};

	for (int pass_ms = INIT_MS; poll(&dead, 1, pass_ms) < 1; kill_members(jail)) {
		if (monotonic_us() > deadline)
			return false;
		pass_ms = 2 * pass_ms < PASS_MAX_MS ? 2 * pass_ms : PASS_MAX_MS;
	}
	return true;
}

bool jail_end(struct jail *jail)
{
	uint64_t deadline = monotonic_us() + END_MS * 1000;

	if (jail->ended)
		return true;
	(void)sys_pidfd_send_signal(jail->pidfd, SIGKILL);
	cgroup_kill(&jail->cgroup);
	/* The kernel lets init be reaped only after every process of its pid namespace. */
	if (!wait_for_init(jail, deadline) || waitpid(jail->init, NULL, WNOHANG) != jail->init)
		return false;
	while (!cgroup_is_empty(&jail->cgroup)) {
		if (monotonic_us() > deadline)
			return false;
		sleep_ms(1);
	}
	jail->ended = true;
	return true;
}
