/* Checks the namespaces. Each is made as jaild makes it: in a user namespace with the same id maps as jaild's. */
#include "check/probe.h"
#include "init/userns.h"
#include "keeper/jail.h"
#include "lib/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A child outside the namespace maps its ids as soon as it exists. */
int enter_userns(const struct options *options)
{
	pid_t mapper, self = getpid();
	int made[2];
	char byte;

	if (pipe(made) < 0 || (mapper = fork()) < 0)
		return -1;
	if (mapper == 0) {
		close(made[1]);
		_exit(read(made[0], &byte, 1) == 1 ? errno_of(userns_map(self, options)) : EPIPE);
	}
	if (unshare(CLONE_NEWUSER) < 0 || write(made[1], "1", 1) != 1)
		return -1;
	errno = exit_of(mapper);
	return errno != 0 || userns_become_root() < 0 ? -1 : prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

int probe_mount_namespace(const struct options *options)
{
	return errno_of(enter_userns(options) < 0 ? -1 : private_mounts());
}

int probe_pid_namespace(const struct options *options)
{
	pid_t pid;

	if (enter_userns(options) < 0 || unshare(CLONE_NEWPID) < 0)
		return errno;
	pid = fork();
	if (pid == 0)
		_exit(getpid() == 1 ? 0 : EPROTO);
	return exit_of(pid);
}

int probe_net_namespace(const struct options *options)
{
	return errno_of(enter_userns(options) < 0 ? -1 : unshare(CLONE_NEWNET));
}

int probe_ipc_namespace(const struct options *options)
{
	return errno_of(enter_userns(options) < 0 ? -1 : unshare(CLONE_NEWIPC));
}

int probe_uts_namespace(const struct options *options)
{
	return errno_of(enter_userns(options) < 0 || unshare(CLONE_NEWUTS) < 0 ? -1 : sethostname("check", 5));
}

int probe_cgroup_namespace(const struct options *options)
{
	return errno_of(enter_userns(options) < 0 ? -1 : unshare(CLONE_NEWCGROUP));
}

/* Repeats what pid 1 of a jail does, up to the change of identity. */
static int live_in_user_namespace(int ready, int mapped)
{
	char byte;

	if (unshare(CLONE_NEWUSER) < 0 || write(ready, "1", 1) != 1 || read(mapped, &byte, 1) != 1)
		return errno ? errno : EPIPE;
	if (write_file_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0") < 0)
		return errno;
	if (setresgid(JOB_GID, JOB_GID, JOB_GID) < 0 || setresuid(JOB_UID, JOB_UID, JOB_UID) < 0)
		return errno;
	return must_fail(unshare(CLONE_NEWUSER), ENOSPC);
}

static int map_user(pid_t pid, const struct options *options)
{
	char path[64], map[64];

	snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
	if (write_file_at(AT_FDCWD, path, "deny") < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	snprintf(map, sizeof(map), "%d %u 1\n", JOB_UID, options->uid_base);
	if (write_file_at(AT_FDCWD, path, map) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	snprintf(map, sizeof(map), "%d %u 1\n", JOB_GID, options->gid_base);
	return write_file_at(AT_FDCWD, path, map);
}

int probe_user_namespace(const struct options *options)
{
	int ready[2], mapped[2], error = 0;
	pid_t pid;
	char byte;

	if (enter_userns(options) < 0 || pipe(ready) < 0 || pipe(mapped) < 0)
		return errno;
	pid = fork();
	if (pid == 0) {
		close(mapped[1]);
		errno = 0;
		_exit(live_in_user_namespace(ready[1], mapped[0]));
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &byte, 1) == 1)
		error = errno_of(map_user(pid, options));
	if (error == 0)
		(void)!write(mapped[1], "1", 1);
	close(mapped[1]);
	return error != 0 ? (exit_of(pid), error) : exit_of(pid);
}
