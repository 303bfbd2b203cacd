#include "init/confine.h"

#include "init/capability.h"
#include "keeper/jail.h"
#include "lib/sys.h"
#include "lib/util.h"

#include <errno.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

_Noreturn void report_failure(int control, int step)
{
	const struct message message = {.kind = MESSAGE_FAILED, .step = step, .error = errno};

	(void)send(control, &message, sizeof(message), MSG_NOSIGNAL);
	_exit(126);
}

static rlim_t lower_of(rlim_t a, rlim_t b)
{
	return a < b ? a : b;
}

/* Where jaild's own hard limit is lower and cannot be raised, that limit is the ceiling. */
int confine_limits(void)
{
	static const struct {
		int resource;
		struct rlimit limit;
	} base[] = {
		/* One byte: with 0 the kernel would still pipe dumps to the handler of core_pattern. */
		{RLIMIT_CORE, {1, 1}},
		{RLIMIT_AS, {RLIM_INFINITY, RLIM_INFINITY}}, {RLIMIT_CPU, {RLIM_INFINITY, RLIM_INFINITY}},
		{RLIMIT_DATA, {RLIM_INFINITY, RLIM_INFINITY}},
		{RLIMIT_FSIZE, {RLIM_INFINITY, RLIM_INFINITY}}, {RLIMIT_LOCKS, {RLIM_INFINITY, RLIM_INFINITY}},
		{RLIMIT_MEMLOCK, {65536, 65536}}, {RLIMIT_MSGQUEUE, {0, 0}}, {RLIMIT_NICE, {0, 0}},
		{RLIMIT_NOFILE, {1048576, 1048576}}, {RLIMIT_NPROC, {65536, 65536}},
		{RLIMIT_RSS, {RLIM_INFINITY, RLIM_INFINITY}}, {RLIMIT_RTPRIO, {0, 0}},
		{RLIMIT_RTTIME, {RLIM_INFINITY, RLIM_INFINITY}}, {RLIMIT_SIGPENDING, {4096, 4096}},
		{RLIMIT_STACK, {8u << 20, RLIM_INFINITY}},
	};

	for (size_t i = 0; i < COUNT(base); i++) {
		__rlimit_resource_t resource = (__rlimit_resource_t)base[i].resource;
		struct rlimit limit;

		if (setrlimit(resource, &base[i].limit) == 0)
			continue;
		if (getrlimit(resource, &limit) < 0)
			return -1;
		limit.rlim_max = lower_of(base[i].limit.rlim_max, limit.rlim_max);
		limit.rlim_cur = lower_of(base[i].limit.rlim_cur, limit.rlim_max);
		if (setrlimit(resource, &limit) < 0)
			return -1;
	}
	return 0;
}

int secure_bits_lock(void)
{
	return prctl(PR_SET_SECUREBITS,
		     SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		     0, 0, 0);
}

static int set_identity(void)
{
	return setresgid(JOB_GID, JOB_GID, JOB_GID) < 0 ? -1 : setresuid(JOB_UID, JOB_UID, JOB_UID);
}

/* Reads the identity and the capabilities back from the kernel; any surplus is a failure. */
static int verify(pid_t pid)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct held[2];
	uid_t uid[3];
	gid_t gid[3];

	errno = EPERM;
	if (syscall(SYS_capget, &header, held) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		if (held[i].effective | held[i].permitted | held[i].inheritable)
			return -1;
	if (bounding_set_is_empty() < 0)
		return -1;
	errno = EPERM;
	if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		if (uid[i] != JOB_UID || gid[i] != JOB_GID)
			return -1;
	if (getgroups(0, NULL) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || getpid() != pid)
		return -1;
	return 0;
}

void confine_identity(int control, pid_t pid)
{
	MUST(control, BOUNDING_SET, bounding_set_empty());
	MUST(control, SECURE_BITS, secure_bits_lock());
	MUST(control, IDENTITY, set_identity());
	MUST(control, CAPABILITIES, capabilities_keep(0));
	MUST(control, NO_NEW_PRIVS, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(control, VERIFY, verify(pid));
}

int confine_descriptors(const int wanted[CONFINED_FDS])
{
	int high[CONFINED_FDS], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -1;
	for (size_t i = 0; i < CONFINED_FDS; i++) {
		high[i] = fcntl(wanted[i] < 0 ? null : wanted[i], F_DUPFD_CLOEXEC, FD_FIRST_UNUSED);
		if (high[i] < 0)
			return -1;
	}
	for (int fd = 0; fd < FD_STATUS; fd++)
		if (dup2(null, fd) < 0)
			return -1;
	for (size_t i = 0; i < CONFINED_FDS; i++)
		if (dup3(high[i], FD_STATUS + (int)i, O_CLOEXEC) < 0)
			return -1;
	return sys_close_range(FD_FIRST_UNUSED, ~0u, 0);
}
