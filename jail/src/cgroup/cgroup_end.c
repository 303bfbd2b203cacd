/* The master's side of control groups: kills the processes in them. Paths are relative to cgroup_tree.fd. */
#include "cgroup/cgroup_tree.h"

#include "cgroup/cgroup.h"
#include "cgroup/freezer.h"
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_LENGTH 255
#define RESIDUE_MAX (4u << 20) /* bytes that may stay charged to a group after its run */

static void kill_member(pid_t pid)
{
	if (pid > 1 && pid != getpid())
		kill(pid, SIGKILL);
}

/*
 * Kills every process of a group and thaws the group, even when it looks empty: the next process in it must not be frozen.
 * True when the group is empty.
 */
static bool end_members(enum controller hierarchy, const char *name)
{
	int directory = cgroup_tree.fd[hierarchy], fd;
	char path[NAME_LENGTH + 32], text[1024];
	bool empty = true;
	pid_t pid = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "%.*s/cgroup.procs", NAME_LENGTH, name);
	fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	/* A number may be split between two reads; a line feed ends each. */
	while ((n = read(fd, text, sizeof(text))) > 0) {
		empty = false;
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			kill_member(pid);
			pid = 0;
		}
	}
	close(fd);
	freezer_thaw_group(cgroup_tree.version, directory, name);
	return empty && n == 0;
}

bool cgroup_remove(enum controller hierarchy, const char *name)
{
	for (int i = 0; i < 5000; i++) {
		if (end_members(hierarchy, name) &&
		    (unlinkat(cgroup_tree.fd[hierarchy], name, AT_REMOVEDIR) == 0 || errno == ENOENT))
			return true;
		sleep_ms(1);
	}
	return false;
}

/* Kernels before 6.12 cannot reset the memory peak of a group, so each run gets a new group there. */
static bool peak_needs_new_group(unsigned slot)
{
	char path[SLOT_PATH];
	struct stat st;

	if (cgroup_tree.version != 2)
		return false;
	snprintf(path, sizeof(path), "slot-%u/memory.peak", slot);
	return fstatat(cgroup_tree.fd[CONTROLLER_MEMORY], path, &st, 0) == 0 && (st.st_mode & 0200) == 0;
}

static bool is_page_cache(unsigned slot, uint64_t memory)
{
	char path[SLOT_PATH], text[8192];

	snprintf(path, sizeof(path), "slot-%u/memory.stat", slot);
	if (read_file_at(cgroup_tree.fd[CONTROLLER_MEMORY], path, text, sizeof(text)) <= 0)
		return false;
	return memory <= keyed_number(text, cgroup_tree.version == 2 ? "file" : "cache") + RESIDUE_MAX;
}

/*
 * Kernel memory of an ended run, such as negative dentries, stays charged to its group and would count for the next
 * run. Page cache is exempt, because a run is not charged for it.
 */
static bool has_residual_memory(unsigned slot)
{
	char path[SLOT_PATH], text[32];
	uint64_t memory;

	snprintf(path, sizeof(path), "slot-%u/%s", slot,
		 cgroup_tree.version == 2 ? "memory.current" : "memory.usage_in_bytes");
	if (read_file_at(cgroup_tree.fd[CONTROLLER_MEMORY], path, text, sizeof(text)) <= 0)
		return false;
	memory = strtoull(text, NULL, 10);
	return memory > RESIDUE_MAX && !is_page_cache(slot, memory);
}

/*
 * It is enough to look at the freezer group, because every process of a slot is in it: a process joins that group first
 * (cgroup_join), cannot leave a group, its children start in all of its groups, and its death removes it from all at
 * once. On v2 there is only one group.
 */
bool cgroups_clean(unsigned slot)
{
	static bool unmade[SLOTS_MAX]; /* the memory group is missing or lacks settings */
	char name[SLOT_PATH];

	if (cgroup_tree.version == 0)
		return true;
	snprintf(name, sizeof(name), "slot-%u", slot);
	if (!end_members(CONTROLLER_FREEZER, name))
		return false;
	if (!unmade[slot] && !peak_needs_new_group(slot) && !has_residual_memory(slot))
		return true;
	if (unlinkat(cgroup_tree.fd[CONTROLLER_MEMORY], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return false;
	unmade[slot] = !cgroup_make_slot(slot);
	return !unmade[slot];
}
