/*
 * The system call policy of the jail, as data.
 *
 * What is not named here does not exist for a program: the call answers ENOSYS,
 * so that C libraries take their fall-back. A line of policy_checked looks at
 * the low 32 bits of arguments, the part that the kernel reads; its rules are
 * tried in order and the last column decides when none of them matches.
 * x32 numbers answer ENOSYS, a foreign architecture kills the process.
 *
 * Nothing tells of accesses to files (inotify, dnotify, fanotify): all runs share the
 * files of the image, and one would be told what the programs of others open.
 *
 * Only seccomp.c and the tests include this file.
 */
#ifndef JAIL_POLICY_H
#define JAIL_POLICY_H

#include <errno.h>
#include <stdint.h>

#define POLICY_ALLOW (-1) /* every other action is the errno answered; 0 pretends success */
#define POLICY_RULES_MAX 36

/* RULE_NULL alone looks at both halves: a pointer is no number. */
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
	"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
	"pwritev2", "lseek", "close", "close_range", "dup", "dup2", "dup3", "flock", "fsync", "fdatasync",
	"ftruncate", "fallocate", "fadvise64", "readahead", "sendfile", "splice", "tee",
	"vmsplice", "copy_file_range", "sync_file_range", "pipe", "pipe2",
	/* files by name */
	"open", "openat", "openat2", "creat", "access", "faccessat", "faccessat2", "stat", "lstat",
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
	"brk", "munmap", "mprotect", "mremap", "msync", "mincore", "mlock", "mlock2", "munlock",
	"mlockall", "munlockall", "pkey_alloc", "pkey_free", "pkey_mprotect", "membarrier",
	"get_mempolicy", "shmat", "shmdt", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget",
	"msgsnd", "msgrcv", "msgctl",
	/* processes and threads */
	"fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "set_tid_address",
	"set_robust_list", "get_robust_list", "rseq", "futex", "futex_waitv", "futex_wake", "futex_wait",
	"futex_requeue", "getpid", "getppid", "gettid", "getpgid", "getpgrp", "setpgid", "getsid",
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
	"sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "getsockopt",
};

static const struct policy_line policy_checked[] = {
	{"socket", EPERM, {OK(0, 1 /* AF_UNIX */)}},
	{"socketpair", EPERM, {OK(0, 1 /* AF_UNIX */)}},
	/* Programs for the packet filter machine are refused whatever the level is. */
	{"setsockopt", POLICY_ALLOW, {
		EQUAL(2, 26 /* SO_ATTACH_FILTER */, EPERM), EQUAL(2, 50 /* SO_ATTACH_BPF */, EPERM),
		EQUAL(2, 51 /* SO_ATTACH_REUSEPORT_CBPF */, EPERM),
		EQUAL(2, 52 /* SO_ATTACH_REUSEPORT_EBPF */, EPERM),
	}},
	/*
	 * No locks that cannot be counted (locks.h): those of open files, leases, and those in a file
	 * table that outlives its process (CLONE_FILES without CLONE_THREAD). No F_NOTIFY.
	 */
	{"fcntl", EINVAL, {
		OK(1, 0 /* F_DUPFD */), OK(1, 1 /* F_GETFD */), OK(1, 2 /* F_SETFD */), OK(1, 3 /* F_GETFL */),
		OK(1, 4 /* F_SETFL */), OK(1, 5 /* F_GETLK */), OK(1, 6 /* F_SETLK */), OK(1, 7 /* F_SETLKW */),
		OK(1, 8 /* F_SETOWN */), OK(1, 9 /* F_GETOWN */), OK(1, 10 /* F_SETSIG */),
		OK(1, 11 /* F_GETSIG */), OK(1, 15 /* F_SETOWN_EX */), OK(1, 16 /* F_GETOWN_EX */),
		OK(1, 17 /* F_GETOWNER_UIDS */), OK(1, 1025 /* F_GETLEASE */),
		OK(1, 1027 /* F_DUPFD_QUERY */), OK(1, 1028 /* F_CREATED_QUERY */),
		OK(1, 1030 /* F_DUPFD_CLOEXEC */), OK(1, 1031 /* F_SETPIPE_SZ */),
		OK(1, 1032 /* F_GETPIPE_SZ */), OK(1, 1033 /* F_ADD_SEALS */), OK(1, 1034 /* F_GET_SEALS */),
		OK(1, 1035 /* F_GET_RW_HINT */), OK(1, 1036 /* F_SET_RW_HINT */),
		OK(1, 1037 /* F_GET_FILE_RW_HINT */), OK(1, 1038 /* F_SET_FILE_RW_HINT */),
	}},
	/* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET */
	{"clone", POLICY_ALLOW, {
		ANY_BIT(0, 0x7e020000u, EPERM), MASKED(0, 0x10400 /* CLONE_THREAD | CLONE_FILES */, 0x400, EINVAL),
	}},
	/* Huge pages are not charged to the memory of the run. */
	{"mmap", POLICY_ALLOW, {ANY_BIT(3, 0x40000 /* MAP_HUGETLB */, ENOMEM)}},
	{"memfd_create", POLICY_ALLOW, {ANY_BIT(1, 4 /* MFD_HUGETLB */, EINVAL)}},
	{"shmget", POLICY_ALLOW, {ANY_BIT(2, 04000 /* SHM_HUGETLB */, EPERM)}},
	/* Merged pages tell one run about the memory of another. */
	{"madvise", POLICY_ALLOW, {EQUAL(2, 12 /* MADV_MERGEABLE */, EINVAL)}},
	/*
	 * Other processes of the uid include the jail's own pid 1. The core limit stays at the one
	 * byte that keeps the kernel from starting the host's crash handler, whatever is asked for.
	 */
	{"prlimit64", 0, {
		DIFFERS(0, 0, EPERM), DIFFERS(1, 4 /* RLIMIT_CORE */, POLICY_ALLOW), IS_NULL(2, POLICY_ALLOW),
	}},
	{"setrlimit", POLICY_ALLOW, {EQUAL(0, 4 /* RLIMIT_CORE */, 0)}},
	{"personality", EPERM, {OK(0, 0), OK(0, 0xffffffffu), OK(0, 0x40000 /* ADDR_NO_RANDOMIZE */)}},
	/*
	 * Nothing slows the jail's first process, by its number, or with all of the uid's: it must be able to die in time.
	 * Programs are in sessions of their own: its process group is out of reach.
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
		OK(1, 0x5451 /* FIOCLEX */), OK(1, 0x5452 /* FIOASYNC */), OK(1, 0x40049409 /* FICLONE */),
		OK(1, 0x4020940d /* FICLONERANGE */), EQUAL(1, 0x5412 /* TIOCSTI */, EPERM),
		EQUAL(1, 0x541c /* TIOCLINUX */, EPERM),
	}},
	{"prctl", EINVAL, {
		OK(0, 1 /* SET_PDEATHSIG */), OK(0, 2 /* GET_PDEATHSIG */), OK(0, 3 /* GET_DUMPABLE */),
		OK(0, 4 /* SET_DUMPABLE */), OK(0, 7 /* GET_KEEPCAPS */), OK(0, 15 /* SET_NAME */),
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
	/* These flush the host's disks; what a run writes is in memory. */
	{"sync", 0, {{0}}},
	{"syncfs", 0, {{0}}},
};

#endif
