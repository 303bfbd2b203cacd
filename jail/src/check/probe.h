/* Helpers of the probes in check_*.c, which alone include it. Results are errno values. */
#ifndef JAIL_PROBE_H
#define JAIL_PROBE_H

#include "check/check.h"
#include "lib/sys.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>

static inline int errno_of(long result)
{
	return result < 0 ? errno : 0;
}

/* 0 when the call failed with the expected error. */
static inline int must_fail(long result, int expected)
{
	if (result >= 0)
		return EPROTO;
	return errno == expected ? 0 : errno;
}

static inline int exit_of(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static inline int private_mounts(void)
{
	return unshare(CLONE_NEWNS) < 0 ? -1 : sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* Becomes root of a new user namespace such as jaild's own; -1 and errno. */
int enter_userns(const struct options *options);

int probe_mount_namespace(const struct options *options);
int probe_pid_namespace(const struct options *options);
int probe_net_namespace(const struct options *options);
int probe_ipc_namespace(const struct options *options);
int probe_uts_namespace(const struct options *options);
int probe_cgroup_namespace(const struct options *options);
int probe_user_namespace(const struct options *options);
int probe_image(const struct options *options);
int probe_tmpfs(const struct options *options);
int probe_devices(const struct options *options);
int probe_overlay(const struct options *options);
int probe_bind(const struct options *options);
int probe_pivot_root(const struct options *options);
int probe_proc(const struct options *options);

#endif
