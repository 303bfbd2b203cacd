/*
 * The system calls of a confined keeper, as data: what its code needs from the first connection on.
 *
 * Any other call kills it, and the master logs the signal. No call makes a process, a socket or a mount; none executes,
 * traces, changes credentials, opens by a handle, or signals by a process number. Existing files can be opened for reading
 * only, as far as the flags are in a register: openat2 passes them in memory.
 *
 * Only seccomp.c and the tests include this file.
 */
#ifndef JAIL_KEEPER_POLICY_H
#define JAIL_KEEPER_POLICY_H

#include "seccomp/policy.h"

#include <fcntl.h>
#include <sys/mman.h>

static const char *const keeper_allowed[] = {
	/* by descriptor */
	"read", "write", "writev", "pread64", "pwrite64", "lseek", "close", "ftruncate", "fchown", "fstat", "fstatfs",
	"getdents64",
	/* the workspace and the jail's /proc */
	"openat2", "mkdirat", "symlinkat", "readlinkat", "fchownat", "newfstatat",
	/* the client, the zygotes, the jail */
	"accept4", "recvfrom", "sendto", "sendmsg", "shutdown", "poll", "ppoll", "epoll_create1", "epoll_ctl", "epoll_wait",
	"epoll_pwait", "wait4",
	/* itself */
	"brk", "munmap", "mremap", "getrandom", "clock_gettime", "gettimeofday", "time", "nanosleep", "clock_nanosleep",
	"sched_yield", "sysinfo", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "restart_syscall", "exit_group",
};

#define OPEN_NEW (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)

static const struct policy_line keeper_checked[] = {
	{"openat", POLICY_KILL, {
		MASKED(2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY, POLICY_ALLOW),
		MASKED(2, O_ACCMODE | O_CREAT | O_EXCL | O_NOFOLLOW, OPEN_NEW, POLICY_ALLOW),
	}},
	{"fchmod", POLICY_KILL, {MASKED(1, ~0777u, 0, POLICY_ALLOW)}},
	{"fcntl", POLICY_KILL, {OK(1, F_GETFL), OK(1, F_SETFD), OK(1, F_DUPFD_CLOEXEC), OK(1, 1033 /* F_ADD_SEALS */)}},
	{"mmap", POLICY_KILL, {ANY_BIT(2, PROT_EXEC, POLICY_KILL), MASKED(3, MAP_ANONYMOUS, MAP_ANONYMOUS, POLICY_ALLOW)}},
	{"pidfd_send_signal", POLICY_KILL, {DIFFERS(1, 9 /* SIGKILL */, POLICY_KILL), OK(3, 0)}},
	{"prctl", POLICY_KILL, {OK(0, 1 /* PR_SET_PDEATHSIG */)}},
};

#endif
