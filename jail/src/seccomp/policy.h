/*
 * The system call policy of the jail, as data.
 *
 * A call that is not named here does not exist for a program: it fails with ENOSYS, so that C libraries use their fallback.
 * A line of policy_checked tests the low 32 bits of arguments, the part that the kernel reads. Its rules are tried in
 * order; `otherwise` decides when none of them matches. x32 numbers fail with ENOSYS; a foreign architecture kills the
 * process.
 *
 * All runs share the files of the image. A program may read them, but no call lets it act on what runs share, or observe
 * what other runs do with it:
 * - no notifications of accesses: inotify, dnotify, fanotify;
 * - no call reports which pages are in memory, or evicts them: preadv2, fadvise, cachestat, MADV_PAGEOUT (mincore reports
 *   nothing about files that the program may not write);
 * - no call bypasses the page cache to the host's disk: O_DIRECT, flushes;
 * - no call leaves anything in an inode: hints of write lifetime.
 *
 * Calls that pass their flags in memory cannot be inspected, so they do not exist: clone3, openat2.
 *
 * Only seccomp.c and the tests include this file.
 */
#ifndef JAIL_POLICY_H
#define JAIL_POLICY_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

#define POLICY_ALLOW (-1) /* any other action is the errno that the call returns; 0 pretends success */
#define POLICY_KILL (-2) /* the whole process */
#define POLICY_RULES_MAX 36

/* Only RULE_NULL tests both halves of an argument, because a pointer has 64 bits. */
enum rule_kind { RULE_END, RULE_EQUAL, RULE_DIFFERS, RULE_ANY_BIT, RULE_NULL };

struct policy_rule {
	enum rule_kind kind;
	uint8_t argument;
	uint32_t mask;
	uint32_t value;
	int action;
};

struct policy_line {
	const char *call;
	int otherwise;
	struct policy_rule rules[POLICY_RULES_MAX];
};

#define EQUAL(argument, value, action) {RULE_EQUAL, argument, 0xffffffffu, value, action}
#define MASKED(argument, mask, value, action) {RULE_EQUAL, argument, mask, value, action}
#define ANY_BIT(argument, mask, action) {RULE_ANY_BIT, argument, mask, 0, action}
#define DIFFERS(argument, value, action) {RULE_DIFFERS, argument, 0xffffffffu, value, action}
#define IS_NULL(argument, action) {RULE_NULL, argument, 0xffffffffu, 0, action}
#define OK(argument, value) EQUAL(argument, value, POLICY_ALLOW)

static const char *const policy_allowed[] = {
	/* files by descriptor */
	"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "lseek",
	"close", "close_range", "dup", "dup2", "dup3", "flock", "ftruncate", "fallocate", "sendfile",
	"copy_file_range", "pipe", "pipe2",
	/* files by name */
	"creat", "access", "faccessat", "faccessat2", "stat", "lstat",
	"fstat", "newfstatat", "statx", "statfs", "fstatfs", "readlink", "readlinkat", "getdents",
	"getdents64", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat",
	"rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "truncate", "chmod",
	"fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes",
	"utimensat", "futimesat", "umask", "getxattr", "lgetxattr", "fgetxattr", "listxattr",
	"llistxattr", "flistxattr", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr",
	"fremovexattr",
	/* waiting */
	"select", "pselect6", "poll", "ppoll", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait",
	"epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "signalfd", "signalfd4", "timerfd_create",
	"timerfd_settime", "timerfd_gettime",
	/* memory */
	"brk", "munmap", "mprotect", "mremap", "mincore", "mlock", "mlock2", "munlock",
	"mlockall", "munlockall", "pkey_alloc", "pkey_free", "pkey_mprotect", "shmat", "shmdt",
	"shmctl", "semget", "semop", "semtimedop", "semctl",
	/* processes and threads */
	"fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "set_tid_address",
	"set_robust_list", "rseq", "getpid", "getppid", "gettid", "getpgid", "getpgrp", "setpgid", "getsid",
	"setsid", "pidfd_open", "pidfd_send_signal", "sched_yield", "sched_getaffinity",
	"sched_getscheduler", "sched_getparam",
	"sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval", "sched_getattr",
	"getpriority", "ioprio_get", "getcpu", "getrlimit", "getrusage",
	"times", "uname", "sysinfo", "getrandom", "restart_syscall",
	/* identity: one uid and no capability exist in the jail's user namespace */
	"getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "setuid",
	"setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid",
	"capget", "capset",
	/* signals and time */
	"kill", "tkill", "tgkill", "rt_sigaction", "rt_sigprocmask", "rt_sigpending", "rt_sigqueueinfo",
	"rt_tgsigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "sigaltstack", "pause",
	"alarm", "getitimer", "setitimer", "timer_create", "timer_settime", "timer_gettime",
	"timer_getoverrun", "timer_delete", "nanosleep", "clock_nanosleep", "clock_gettime",
	"clock_getres", "gettimeofday", "time",
	/* sockets: only AF_UNIX ones can be made */
	"bind", "listen", "accept", "accept4", "connect", "getsockname", "getpeername", "shutdown",
};

static const struct policy_line policy_checked[] = {
	{"socket", EPERM, {OK(0, 1 /* AF_UNIX */)}},
	{"socketpair", EPERM, {OK(0, 1 /* AF_UNIX */)}},
	/* Socket filters (BPF) are refused, whatever the level is. */
	{"setsockopt", POLICY_ALLOW, {
		EQUAL(2, 26 /* SO_ATTACH_FILTER */, EPERM), EQUAL(2, 50 /* SO_ATTACH_BPF */, EPERM),
		EQUAL(2, 51 /* SO_ATTACH_REUSEPORT_CBPF */, EPERM),
		EQUAL(2, 52 /* SO_ATTACH_REUSEPORT_EBPF */, EPERM),
	}},
	/* The kernel counts these numbers for all namespaces together, so they would tell runs about each other. */
	{"getsockopt", POLICY_ALLOW, {
		EQUAL(2, 57 /* SO_COOKIE */, ENOPROTOOPT), EQUAL(2, 71 /* SO_NETNS_COOKIE */, ENOPROTOOPT),
	}},
	/* Out-of-band data on AF_UNIX sockets: no program needs it, and it has been used to escape from a sandbox. */
	{"sendto", POLICY_ALLOW, {ANY_BIT(3, 1 /* MSG_OOB */, EOPNOTSUPP)}},
	{"recvfrom", POLICY_ALLOW, {ANY_BIT(3, 1 /* MSG_OOB */, EOPNOTSUPP)}},
	{"sendmmsg", POLICY_ALLOW, {ANY_BIT(3, 1 /* MSG_OOB */, EOPNOTSUPP)}},
	{"recvmmsg", POLICY_ALLOW, {ANY_BIT(3, 1 /* MSG_OOB */, EOPNOTSUPP)}},
	{"sendmsg", POLICY_ALLOW, {ANY_BIT(2, 1 /* MSG_OOB */, EOPNOTSUPP)}},
	{"recvmsg", POLICY_ALLOW, {ANY_BIT(2, 1 /* MSG_OOB */, EOPNOTSUPP)}},
	/* tmpfs knew no O_DIRECT before Linux 6.6, so programs expect EINVAL. */
	{"open", POLICY_ALLOW, {ANY_BIT(1, O_DIRECT, EINVAL)}},
	{"openat", POLICY_ALLOW, {ANY_BIT(2, O_DIRECT, EINVAL)}},
	/*
	 * No locks that cannot be counted (locks.h): locks of open files, leases, and locks in a file
	 * table that outlives its process (CLONE_FILES without CLONE_THREAD). No F_NOTIFY,
	 * no hints that stay in an inode, no signals other than SIGIO.
	 */
	{"fcntl", POLICY_ALLOW, {
		OK(1, 0 /* F_DUPFD */), OK(1, 1 /* F_GETFD */), OK(1, 2 /* F_SETFD */), OK(1, 3 /* F_GETFL */),
		OK(1, 5 /* F_GETLK */), OK(1, 6 /* F_SETLK */), OK(1, 7 /* F_SETLKW */),
		OK(1, 8 /* F_SETOWN */), OK(1, 9 /* F_GETOWN */), OK(1, 15 /* F_SETOWN_EX */),
		OK(1, 16 /* F_GETOWN_EX */), OK(1, 1027 /* F_DUPFD_QUERY */), OK(1, 1028 /* F_CREATED_QUERY */),
		OK(1, 1030 /* F_DUPFD_CLOEXEC */), OK(1, 1031 /* F_SETPIPE_SZ */),
		OK(1, 1032 /* F_GETPIPE_SZ */), OK(1, 1033 /* F_ADD_SEALS */), OK(1, 1034 /* F_GET_SEALS */),
		DIFFERS(1, 4 /* F_SETFL */, EINVAL), ANY_BIT(2, O_DIRECT, EINVAL),
	}},
	/* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET */
	{"clone", POLICY_ALLOW, {
		ANY_BIT(0, 0x7e020000u, EPERM), MASKED(0, 0x10400 /* CLONE_THREAD | CLONE_FILES */, 0x400, EINVAL),
	}},
	/* Huge pages are not charged to the memory of the run. */
	{"mmap", POLICY_ALLOW, {ANY_BIT(3, 0x40000 /* MAP_HUGETLB */, ENOMEM)}},
	{"memfd_create", POLICY_ALLOW, {ANY_BIT(1, 4 /* MFD_HUGETLB */, EINVAL)}},
	{"shmget", POLICY_ALLOW, {ANY_BIT(2, 04000 /* SHM_HUGETLB */, EPERM)}},
	/*
	 * No merged pages, which tell one run about the memory of another, and nothing that moves pages of
	 * the image about: MADV_COLD, MADV_PAGEOUT, MADV_COLLAPSE.
	 */
	{"madvise", EINVAL, {
		OK(2, 0 /* MADV_NORMAL */), OK(2, 1 /* MADV_RANDOM */), OK(2, 2 /* MADV_SEQUENTIAL */),
		OK(2, 3 /* MADV_WILLNEED */), OK(2, 4 /* MADV_DONTNEED */), OK(2, 8 /* MADV_FREE */),
		OK(2, 9 /* MADV_REMOVE */), OK(2, 10 /* MADV_DONTFORK */), OK(2, 11 /* MADV_DOFORK */),
		OK(2, 14 /* MADV_HUGEPAGE */), OK(2, 15 /* MADV_NOHUGEPAGE */), OK(2, 16 /* MADV_DONTDUMP */),
		OK(2, 17 /* MADV_DODUMP */), OK(2, 18 /* MADV_WIPEONFORK */), OK(2, 19 /* MADV_KEEPONFORK */),
		OK(2, 22 /* MADV_POPULATE_READ */), OK(2, 23 /* MADV_POPULATE_WRITE */),
		OK(2, 24 /* MADV_DONTNEED_LOCKED */),
	}},
	/*
	 * No priority inheritance: its code in the kernel is a source of vulnerabilities, and it is useful only with
	 * real-time threads, which a run cannot have. C libraries return ENOTSUP for such mutexes.
	 */
	{"futex", ENOSYS, {
		MASKED(1, 0x7f, 0 /* WAIT */, POLICY_ALLOW), MASKED(1, 0x7f, 1 /* WAKE */, POLICY_ALLOW),
		MASKED(1, 0x7f, 3 /* REQUEUE */, POLICY_ALLOW), MASKED(1, 0x7f, 4 /* CMP_REQUEUE */, POLICY_ALLOW),
		MASKED(1, 0x7f, 5 /* WAKE_OP */, POLICY_ALLOW), MASKED(1, 0x7f, 9 /* WAIT_BITSET */, POLICY_ALLOW),
		MASKED(1, 0x7f, 10 /* WAKE_BITSET */, POLICY_ALLOW),
	}},
	/*
	 * No limits of other processes: those of the uid include the jail's own pid 1. The core limit stays at one byte,
	 * whatever a program requests: that byte keeps the kernel from starting the host's crash handler.
	 */
	{"prlimit64", 0, {
		DIFFERS(0, 0, EPERM), DIFFERS(1, 4 /* RLIMIT_CORE */, POLICY_ALLOW), IS_NULL(2, POLICY_ALLOW),
	}},
	{"setrlimit", POLICY_ALLOW, {EQUAL(0, 4 /* RLIMIT_CORE */, 0)}},
	{"personality", EPERM, {OK(0, 0), OK(0, 0xffffffffu), OK(0, 0x40000 /* ADDR_NO_RANDOMIZE */)}},
	/*
	 * No program can slow the jail's first process, by its number or together with all processes of the uid: it must be
	 * able to die in time. Programs are in sessions of their own, so they cannot reach its process group.
	 */
	{"sched_setaffinity", POLICY_ALLOW, {EQUAL(0, 1, EPERM)}},
	{"sched_setparam", POLICY_ALLOW, {EQUAL(0, 1, EPERM)}},
	{"setpriority", POLICY_ALLOW, {EQUAL(1, 1, EPERM), EQUAL(0, 2 /* PRIO_USER */, EPERM)}},
	{"sched_setscheduler", EPERM, {
		EQUAL(0, 1, EPERM),
		MASKED(1, 0xbfffffffu, 0 /* SCHED_OTHER */, POLICY_ALLOW),
		MASKED(1, 0xbfffffffu, 3 /* SCHED_BATCH */, POLICY_ALLOW),
		MASKED(1, 0xbfffffffu, 5 /* SCHED_IDLE */, POLICY_ALLOW),
	}},
	{"mknod", EPERM, {
		MASKED(1, 0170000, 0, POLICY_ALLOW), MASKED(1, 0170000, 0100000, POLICY_ALLOW),
		MASKED(1, 0170000, 0010000, POLICY_ALLOW),
	}},
	{"mknodat", EPERM, {
		MASKED(2, 0170000, 0, POLICY_ALLOW), MASKED(2, 0170000, 0100000, POLICY_ALLOW),
		MASKED(2, 0170000, 0010000, POLICY_ALLOW),
	}},
	{"ioctl", ENOTTY, {
		OK(1, 0x5401 /* TCGETS */), OK(1, 0x5413 /* TIOCGWINSZ */), OK(1, 0x540f /* TIOCGPGRP */),
		OK(1, 0x541b /* FIONREAD */), OK(1, 0x5421 /* FIONBIO */), OK(1, 0x5450 /* FIONCLEX */),
		OK(1, 0x5451 /* FIOCLEX */), OK(1, 0x5452 /* FIOASYNC */), EQUAL(1, 0x5412 /* TIOCSTI */, EPERM),
		EQUAL(1, 0x541c /* TIOCLINUX */, EPERM),
	}},
	{"prctl", EINVAL, {
		OK(0, 1 /* SET_PDEATHSIG */), OK(0, 2 /* GET_PDEATHSIG */), OK(0, 3 /* GET_DUMPABLE */),
		/*
		 * Ignored: a process that hides from its keeper could not be paused, and in a jail there is nobody else to
		 * hide from.
		 */
		EQUAL(0, 4 /* SET_DUMPABLE */, 0), OK(0, 7 /* GET_KEEPCAPS */), OK(0, 15 /* SET_NAME */),
		OK(0, 16 /* GET_NAME */), OK(0, 21 /* GET_SECCOMP */), OK(0, 23 /* CAPBSET_READ */),
		OK(0, 27 /* GET_SECUREBITS */), OK(0, 29 /* SET_TIMERSLACK */),
		OK(0, 30 /* GET_TIMERSLACK */), OK(0, 36 /* SET_CHILD_SUBREAPER */),
		OK(0, 37 /* GET_CHILD_SUBREAPER */), OK(0, 38 /* SET_NO_NEW_PRIVS */),
		OK(0, 39 /* GET_NO_NEW_PRIVS */), OK(0, 40 /* GET_TID_ADDRESS */),
		OK(0, 41 /* SET_THP_DISABLE */), OK(0, 42 /* GET_THP_DISABLE */), OK(0, 47 /* CAP_AMBIENT */),
		OK(0, 52 /* GET_SPECULATION_CTRL */), OK(0, 53 /* SET_SPECULATION_CTRL */),
		OK(0, 0x53564d41 /* SET_VMA */), EQUAL(0, 22 /* SET_SECCOMP */, EPERM),
		EQUAL(0, 35 /* SET_MM */, EPERM), EQUAL(0, 24 /* CAPBSET_DROP */, EPERM),
		EQUAL(0, 28 /* SET_SECUREBITS */, EPERM), EQUAL(0, 59 /* SYSCALL_USER_DISPATCH */, EPERM),
	}},
	{"arch_prctl", EINVAL, {
		OK(0, 0x1001 /* SET_GS */), OK(0, 0x1002 /* SET_FS */), OK(0, 0x1003 /* GET_FS */),
		OK(0, 0x1004 /* GET_GS */), OK(0, 0x1011 /* GET_CPUID */),
		OK(0, 0x1021 /* GET_XCOMP_SUPP */), OK(0, 0x1022 /* GET_XCOMP_PERM */),
		OK(0, 0x1023 /* REQ_XCOMP_PERM */),
	}},
	/* splice puts pages of the image into pipes. Go falls back to copying only on EINVAL. */
	{"splice", EINVAL, {{0}}},
	/*
	 * These calls would reach the host's disks. Everything that a run writes is in memory, so there is nothing to do.
	 * The price: a descriptor that is not open does not cause EBADF.
	 */
	{"sync", 0, {{0}}},
	{"syncfs", 0, {{0}}},
	{"fsync", 0, {{0}}},
	{"fdatasync", 0, {{0}}},
	{"fadvise64", 0, {{0}}},
	{"readahead", 0, {{0}}},
	{"msync", POLICY_ALLOW, {ANY_BIT(2, 4 /* MS_SYNC */, 0)}},
};

#endif
