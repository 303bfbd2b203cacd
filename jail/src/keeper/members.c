#include "keeper/members.h"

#include "lib/sys.h"

#include <dirent.h>
#include <stddef.h>

#define LISTING 32768

static void kill_member(int proc, const char *name)
{
	int process = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (process < 0)
		return;
	(void)sys_pidfd_send_signal(process, SIGKILL);
	close(process);
}

void members_kill(int proc)
{
	static char listing[LISTING] __attribute__((aligned(8)));
	ssize_t size;

	if (lseek(proc, 0, SEEK_SET) < 0)
		return;
	while ((size = getdents64(proc, listing, LISTING)) > 0)
		for (char *at = listing; at < listing + size; at += ((struct dirent64 *)at)->d_reclen) {
			const char *name = ((struct dirent64 *)at)->d_name;

			if (*name >= '1' && *name <= '9')
				kill_member(proc, name);
		}
}
