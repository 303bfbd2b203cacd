#include "init/userns.h"

#include "lib/util.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

uid_t userns_uid(const struct options *options)
{
	return options->uid_base - IDS_BELOW_BASE;
}

gid_t userns_gid(const struct options *options)
{
	return options->gid_base - IDS_BELOW_BASE;
}

static int map(pid_t pid, const char *file, unsigned root, unsigned base, unsigned count)
{
	char path[64], text[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	snprintf(text, sizeof(text), "0 %u 1\n%u %u %u\n", root, base, base, count);
	return write_file_at(AT_FDCWD, path, text);
}

int userns_map(pid_t pid, const struct options *o)
{
	if (map(pid, "uid_map", userns_uid(o), o->uid_base, o->slots) < 0)
		return -1;
	return map(pid, "gid_map", userns_gid(o), o->gid_base, o->slots);
}

int userns_become_root(void)
{
	return setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 ? -1 : setresuid(0, 0, 0);
}

int userns_enter(int userns)
{
	return setns(userns, CLONE_NEWUSER) < 0 ? -1 : userns_become_root();
}
