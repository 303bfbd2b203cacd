/* The table of all features except control groups, in the order of the output, and the probes without a file of their own. */
#include "check/probe.h"
#include "init/capability.h"
#include "lib/util.h"
#include "seccomp/seccomp.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define KVM_VERSION 12

/* The master can drop every capability that it does not need. */
static int probe_capabilities(const struct options *options)
{
	(void)options;
	return errno_of(bounding_set_keep(0) < 0 ? -1 : capabilities_keep(FILE_CAPABILITIES));
}

static int probe_pidfd(const struct options *options)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .flags = CLONE_PIDFD};
	int fd = -1, result;
	pid_t pid;

	(void)options;
	args.pidfd = (uint64_t)(uintptr_t)&fd;
	pid = sys_clone3(&args);
	if (pid < 0)
		return errno;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	result = errno_of(sys_pidfd_send_signal(fd, SIGKILL));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return result;
}

static int probe_openat2(const struct options *options)
{
	const uint64_t beneath =
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;

	(void)options;
	if (chdir("/") < 0 || sys_openat2(AT_FDCWD, "proc", O_PATH | O_DIRECTORY, 0) < 0)
		return errno;
	return must_fail(sys_openat2(AT_FDCWD, "proc", O_PATH | O_DIRECTORY, beneath), EXDEV);
}

static int probe_close_range(const struct options *options)
{
	int fd = dup(0);

	(void)options;
	if (fd < 0 || sys_close_range((unsigned)fd, ~0u, 0) < 0)
		return errno;
	return must_fail(fcntl(fd, F_GETFD), EBADF);
}

static int probe_memfd(const struct options *options)
{
	int fd = memfd_create("check", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)options;
	if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0)
		return errno;
	return must_fail(write(fd, "x", 1), EPERM);
}

static int probe_seccomp(const struct options *options)
{
	static struct seccomp_program policy;

	(void)options;
	if (!seccomp_build(&policy))
		return E2BIG;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(&policy) < 0)
		return errno;
	/* Calls that root may make must fail now. */
	if (must_fail(unshare(CLONE_NEWNS), ENOSYS) != 0)
		return EPERM;
	return must_fail(socket(AF_INET, SOCK_STREAM, 0), EPERM) == 0 ? 0 : EPERM;
}

bool core_pattern_is_safe(const char *pattern)
{
	/* A file and a program that the kernel starts are both subject to the jail's RLIMIT_CORE of one byte. A socket is not. */
	return pattern[0] != '@';
}

static int probe_core_pattern(const struct options *options)
{
	char pattern[256];

	(void)options;
	if (read_file_at(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)) < 0)
		return errno;
	return core_pattern_is_safe(pattern) ? 0 : EPERM;
}

static int probe_kvm(const struct options *options)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	(void)options;
	if (kvm < 0)
		return errno;
	if (ioctl(kvm, KVM_GET_API_VERSION, 0) != KVM_VERSION)
		return EPROTO;
	return errno_of(ioctl(kvm, KVM_CREATE_VM, 0));
}

#define ROOT_FIX "run as real root with CAP_SYS_ADMIN (containers: privileged); sysctl user.max_*_namespaces > 0"

const struct feature kernel_features[] = {
	{"image", probe_image,
	 "build the image (./svc up): it needs /proc /dev /tmp /mnt/data /run, on a file system without noexec", NEEDED},
	{"mount-namespace", probe_mount_namespace, ROOT_FIX, NEEDED},
	{"pid-namespace", probe_pid_namespace, ROOT_FIX, NEEDED},
	{"net-namespace", probe_net_namespace, ROOT_FIX, NEEDED},
	{"ipc-namespace", probe_ipc_namespace, ROOT_FIX, NEEDED},
	{"uts-namespace", probe_uts_namespace, ROOT_FIX, NEEDED},
	{"cgroup-namespace", probe_cgroup_namespace, ROOT_FIX, NEEDED},
	{"user-namespace", probe_user_namespace,
	 "sysctl user.max_user_namespaces > 0; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0 or a profile that allows "
	 "userns to jaild; a "
	 "container must not map users and must leave /proc/sys writable", NEEDED},
	{"tmpfs", probe_tmpfs, "Linux 5.2 or newer; no seccomp profile around jaild that blocks mounts", NEEDED},
	{"devices", probe_devices, "jaild needs CAP_MKNOD, and device nodes must work (not in a user namespace)", NEEDED},
	{"bind-mount", probe_bind, "Linux 5.12 or newer; no seccomp profile around jaild that blocks mounts", NEEDED},
	{"overlay", probe_overlay,
	 "a kernel with overlayfs (modprobe overlay); the image on a file system that can lie under an overlay, "
	 "itself no overlay on an overlay", NEEDED},
	{"pivot-root", probe_pivot_root, "the host's root must not be the initial ramfs", NEEDED},
	{"proc", probe_proc, "Linux 5.8 or newer; mount /proc whole: a container's masked or read-only /proc is not enough", NEEDED},
	{"capabilities", probe_capabilities, "jaild needs the capabilities of root", NEEDED},
	{"pidfd", probe_pidfd, "Linux 5.4 or newer; no seccomp profile around jaild that blocks clone3", NEEDED},
	{"openat2", probe_openat2, "Linux 5.6 or newer", NEEDED},
	{"close-range", probe_close_range, "Linux 5.11 or newer", NEEDED},
	{"memfd", probe_memfd, "a kernel with CONFIG_MEMFD_CREATE; sysctl vm.memfd_noexec=0", NEEDED},
	{"seccomp", probe_seccomp, "a kernel with CONFIG_SECCOMP_FILTER", NEEDED},
	{"core-pattern", probe_core_pattern,
	 "crashes in jails would be dumped into a socket of the host: sysctl kernel.core_pattern=core", NEEDED},
	{"kvm", probe_kvm, "only microVMs need it, and jails do not", OPTIONAL},
};
const unsigned kernel_feature_count = COUNT(kernel_features);
