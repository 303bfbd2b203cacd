#include "init/capability.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITIES_MAX 64

/*
 * Whether a call failed because the kernel has no capability of this number: the list ends there. Every supported kernel has
 * all numbers up to CAP_CHECKPOINT_RESTORE.
 */
static bool is_end(unsigned capability)
{
	return errno == EINVAL && capability > CAP_CHECKPOINT_RESTORE;
}

static int drop(unsigned capability)
{
	return prctl(PR_CAPBSET_DROP, (unsigned long)capability, 0, 0, 0);
}

static int is_in_set(unsigned capability)
{
	return prctl(PR_CAPBSET_READ, (unsigned long)capability, 0, 0, 0);
}

int bounding_set_keep(uint64_t kept)
{
	for (unsigned capability = 0; capability < CAPABILITIES_MAX; capability++) {
		int answer = is_in_set(capability);

		if (answer < 0)
			return is_end(capability) ? 0 : -1;
		if (answer > 0 && !(kept & UINT64_C(1) << capability) && drop(capability) < 0)
			return -1;
	}
	return 0;
}

int bounding_set_empty(void)
{
	for (unsigned capability = 0; capability < CAPABILITIES_MAX; capability++)
		if (drop(capability) < 0)
			return is_end(capability) ? 0 : -1;
	return 0;
}

int bounding_set_is_empty(void)
{
	for (unsigned capability = 0; capability < CAPABILITIES_MAX; capability++) {
		int answer = is_in_set(capability);

		if (answer < 0)
			return is_end(capability) ? 0 : -1;
		if (answer > 0)
			return -1;
	}
	return 0;
}

int capabilities_keep(uint32_t kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 || syscall(SYS_capget, &header, data) < 0)
		return -1;
	kept &= data[0].permitted;
	data[0] = (struct __user_cap_data_struct){kept, kept, 0};
	data[1] = (struct __user_cap_data_struct){0, 0, 0};
	return (int)syscall(SYS_capset, &header, data);
}
