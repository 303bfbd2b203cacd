/*
 * System calls that jaild and everything below it do not need after its start, as data. The master binds itself to this
 * policy, so keepers, zygotes and programs inherit it, in addition to their own policies. These calls fail with EPERM; all
 * others are allowed.
 *
 * Only seccomp.c and the tests include this file.
 */
#ifndef JAIL_HOST_POLICY_H
#define JAIL_HOST_POLICY_H

static const char *const host_denied[] = {
	/* other processes */
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp", "migrate_pages",
	"move_pages",
	/* files without their path names */
	"open_by_handle_at", "name_to_handle_at", "lookup_dcookie",
	/* the kernel and the machine */
	"bpf", "perf_event_open", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
	"syslog", "acct", "swapon", "swapoff", "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "clock_adjtime",
	"adjtimex", "iopl", "ioperm", "modify_ldt", "vhangup", "uselib", "nfsservctl", "fanotify_init",
	/* io_uring, and page faults that are handled in user space */
	"io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
	/* keyrings of the user id */
	"add_key", "request_key", "keyctl",
};

#endif
