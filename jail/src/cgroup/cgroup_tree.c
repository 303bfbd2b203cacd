/* The master's side of control groups: makes and removes them. */
#include "cgroup/cgroup_tree.h"

#include "cgroup/cgroup.h"
#include "cgroup/freezer.h"
#include "init/userns.h"
#include "lib/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FROZEN_GROUP "frozen"
#define PERIOD_US 100000

struct cgroup_tree cgroup_tree = {.fd = {-1, -1, -1, -1, -1}};

static const struct options *settings;
static bool owned; /* this master holds the lock on the groups */
/*
 * v2: jaild starts in base and makes top below it. top contains JAILS, whose limits hold for all slots, and SELF, the
 * group of jaild, its keepers and its zygotes: creating a process in a slot needs write access to their common parent.
 */
#define JAILS "jails"
#define SELF "jaild"
static char v2_base[PATH_MAX], v2_top[PATH_MAX];
static char v2_home[PATH_MAX]; /* the group in which jaild was started, and to which it returns before it ends */
static char v2_added[64]; /* controllers that jaild enabled below v2_base */
static bool v2_moved;	  /* jaild is in SELF */

enum controller cgroup_hierarchy(enum controller controller)
{
	for (unsigned i = 0; i < controller; i++)
		if (strcmp(cgroup_tree.own[i], cgroup_tree.own[controller]) == 0)
			return (enum controller)i;
	return controller;
}

static int write_control(const char *group, const char *file, const char *text)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", group, file);
	return write_file_at(AT_FDCWD, path, text);
}

static void must_write(const char *group, const char *file, const char *text)
{
	if (write_control(group, file, text) < 0)
		fatal("cannot write %s of the control group %s", file, group);
}

/* Removes all groups below jaild's own in one hierarchy. */
static bool remove_children(enum controller hierarchy)
{
	DIR *directory = opendir(cgroup_tree.own[hierarchy]);
	struct dirent *entry;
	bool done = directory || errno == ENOENT;

	while (errno = 0, directory && (entry = readdir(directory))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		done = cgroup_remove(hierarchy, entry->d_name) && done;
	}
	done = done && errno == 0;
	if (directory)
		closedir(directory);
	return done;
}

static void make_group(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		fatal("cannot make the control group %s", path);
}

static void slot_group(char *path, size_t size, enum controller controller, unsigned slot)
{
	if ((size_t)snprintf(path, size, "%s/slot-%u", cgroup_tree.own[controller], slot) >= size)
		fatal("the path of a control group is too long");
}

/* Keepers and zygotes create processes in groups. No other process has their id, and they cannot move processes of other ids. */
static bool delegate_entry(const char *group)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", group, cgroup_tree.version == 2 ? "cgroup.procs" : "tasks");
	return chown(path, userns_uid(settings), userns_gid(settings)) == 0;
}

static bool forbid_swap(const char *group)
{
	if (cgroup_tree.version == 1)
		return write_control(group, "memory.swappiness", "0") == 0;
	return write_control(group, "memory.oom.group", "1") == 0 &&
	       (write_control(group, "memory.swap.max", "0") == 0 || errno == ENOENT);
}

static bool limit_cpu(const char *group)
{
	char text[64];

	if (settings->cpu_percent == 0)
		return true;
	if (cgroup_tree.version == 1) {
		snprintf(text, sizeof(text), "%u", settings->cpu_percent * (PERIOD_US / 100));
		return write_control(group, "cpu.cfs_quota_us", text) == 0;
	}
	snprintf(text, sizeof(text), "%u %u", settings->cpu_percent * (PERIOD_US / 100), PERIOD_US);
	return write_control(group, "cpu.max", text) == 0;
}

bool cgroup_make_slot(unsigned slot)
{
	char path[PATH_MAX];

	for (unsigned c = 0; c < CONTROLLERS; c++) {
		if (cgroup_hierarchy((enum controller)c) != c)
			continue;
		slot_group(path, sizeof(path), (enum controller)c, slot);
		if ((mkdir(path, 0755) < 0 && errno != EEXIST) || !delegate_entry(path))
			return false;
	}
	slot_group(path, sizeof(path), CONTROLLER_MEMORY, slot);
	if (!forbid_swap(path))
		return false;
	slot_group(path, sizeof(path), CONTROLLER_CPU, slot);
	return limit_cpu(path);
}

/*
 * v1: an empty group that is always frozen. When the first group of a machine freezes and when the last one thaws, the kernel
 * patches its own code while every processor waits. This group keeps that cost out of the pause of a run.
 */
static void keep_one_frozen(void)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/" FROZEN_GROUP, cgroup_tree.own[CONTROLLER_FREEZER]);
	make_group(path);
	must_write(path, freezer_control_file(1), "FROZEN");
}

/* Two masters must not share a group: the second would kill the runs of the first. */
static void open_own_groups(void)
{
	for (unsigned c = 0; c < CONTROLLERS; c++) {
		enum controller first = cgroup_hierarchy((enum controller)c);

		cgroup_tree.fd[c] = first != c ? cgroup_tree.fd[first]
					       : open(cgroup_tree.own[c], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (cgroup_tree.fd[c] < 0)
			fatal("cannot open the control group %s", cgroup_tree.own[c]);
	}
	for (int i = 0; i < 200; i++) {
		if (flock(cgroup_tree.fd[CONTROLLER_MEMORY], LOCK_EX | LOCK_NB) == 0) {
			owned = true;
			return;
		}
		sleep_ms(10);
	}
	fatal("another jaild uses the control group name %s", settings->cgroup);
}

void cgroups_forget(void)
{
	for (unsigned c = 0; c < CONTROLLERS; c++)
		if (cgroup_tree.fd[c] >= 0 && cgroup_hierarchy((enum controller)c) == c)
			close(cgroup_tree.fd[c]);
	for (unsigned c = 0; c < CONTROLLERS; c++)
		cgroup_tree.fd[c] = -1;
}

int cgroup_enable(const char *group, char *added, size_t size)
{
	static const char *const names[] = {"memory", "pids", "cpu"};
	char path[PATH_MAX + 64], present[512], text[16];

	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", group);
	if (read_file_at(AT_FDCWD, path, present, sizeof(present)) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(names); i++) {
		if (cgroup_has_word(present, names[i], ' '))
			continue;
		snprintf(text, sizeof(text), "+%s", names[i]);
		if (write_file_at(AT_FDCWD, path, text) < 0)
			return -1;
		if (added)
			snprintf(added + strlen(added), size - strlen(added), "-%s ", names[i]);
	}
	return 0;
}

static void move_self(const char *group)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	must_write(group, "cgroup.procs", pid);
}

static void make_v2(void)
{
	char self[PATH_MAX];

	snprintf(self, sizeof(self), "%.3900s/" SELF, v2_top);
	make_group(self);
	if (!cgroup_find_own(v2_home, sizeof(v2_home)))
		fatal("cannot find the control group of jaild");
	move_self(self);
	v2_moved = true;
	if (cgroup_enable(v2_base, v2_added, sizeof(v2_added)) < 0) {
		if (errno != EBUSY)
			fatal("cannot enable memory, pids and cpu below %s", v2_base);
		fatal("the control group %s holds other processes; start jaild in a group of its own (systemd: Delegate=yes and "
		      "DelegateSubgroup=)", v2_base);
	}
	if (cgroup_enable(v2_top, NULL, 0) < 0 || cgroup_enable(cgroup_tree.own[CONTROLLER_MEMORY], NULL, 0) < 0)
		fatal("cannot enable memory, pids and cpu below %s", v2_top);
	if (!delegate_entry(v2_top))
		fatal("cannot change the owner of the entry of %s", v2_top);
}

/* Undoes make_v2 in reverse order, as far as it got. */
static void unmake_v2(void)
{
	char self[PATH_MAX];

	snprintf(self, sizeof(self), "%.3900s/" SELF, v2_top);
	(void)write_control(cgroup_tree.own[CONTROLLER_MEMORY], "cgroup.subtree_control", "-memory -pids -cpu");
	(void)rmdir(cgroup_tree.own[CONTROLLER_MEMORY]);
	(void)write_control(v2_top, "cgroup.subtree_control", "-memory -pids -cpu");
	(void)write_control(v2_base, "cgroup.subtree_control", v2_added);
	if (v2_moved)
		move_self(v2_home);
	if ((rmdir(self) < 0 && errno != ENOENT) || rmdir(v2_top) < 0)
		log_line(LOG_ERROR, -1, errno, "the control group cannot be removed");
}

static void write_limit(enum controller controller, const char *file, const char *none, uint64_t limit)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, limit);
	must_write(cgroup_tree.own[controller], file, limit == 0 ? none : text);
}

/* Sets the limits of all slots together. "No limit" is written too, because an earlier jaild may have set one. */
static void limit_all(void)
{
	const char *own = cgroup_tree.own[CONTROLLER_MEMORY];
	bool counts_swap;

	write_limit(CONTROLLER_PIDS, "pids.max", "max", settings->pids);
	if (cgroup_tree.version == 2) {
		write_limit(CONTROLLER_MEMORY, "memory.max", "max", settings->memory_bytes);
		return;
	}
	/* Before Linux 5.11 a parent group counts its children only with use_hierarchy. */
	if (settings->memory_bytes > 0 && write_control(own, "memory.use_hierarchy", "1") < 0 && errno != ENOENT)
		fatal("cannot count the memory of all jails together in %s", own);
	counts_swap = write_control(own, "memory.memsw.limit_in_bytes", "-1") == 0;
	write_limit(CONTROLLER_MEMORY, "memory.limit_in_bytes", "-1", settings->memory_bytes);
	if (counts_swap)
		write_limit(CONTROLLER_MEMORY, "memory.memsw.limit_in_bytes", "-1", settings->memory_bytes);
}

static bool find_tree(void)
{
	char base[PATH_MAX];

	if (cgroup_find_v2(settings->cgroup_base, v2_base, sizeof(v2_base))) {
		cgroup_tree.version = 2;
		snprintf(v2_top, PATH_MAX, "%.3900s/%s", v2_base, settings->cgroup);
		for (unsigned c = 0; c < CONTROLLERS; c++)
			snprintf(cgroup_tree.own[c], PATH_MAX, "%.4000s/" JAILS, v2_top);
		return true;
	}
	for (unsigned c = 0; c < CONTROLLERS; c++) {
		if (!cgroup_find_v1((enum controller)c, base, sizeof(base)))
			return false;
		snprintf(cgroup_tree.own[c], PATH_MAX, "%.3900s/%s", base, settings->cgroup);
	}
	cgroup_tree.version = 1;
	return true;
}

void cgroups_make(const struct options *options)
{
	settings = options;
	if (options->no_cgroups) {
		log_line(LOG_WARN, -1, 0, "no control groups: memory, process and CPU limits are not enforced");
		return;
	}
	errno = 0;
	if (!find_tree())
		fatal("no control groups with freezer, memory, pids and cpu: mount cgroup2, or start with --no-cgroups");
	if (cgroup_tree.version == 2)
		make_group(v2_top);
	for (unsigned c = 0; c < CONTROLLERS; c++)
		if (cgroup_hierarchy((enum controller)c) == c)
			make_group(cgroup_tree.own[c]);
	open_own_groups();
	for (unsigned c = 0; c < CONTROLLERS; c++)
		if (cgroup_hierarchy((enum controller)c) == c && !remove_children((enum controller)c))
			fatal("cannot remove old control groups below %s", cgroup_tree.own[c]);
	if (cgroup_tree.version == 2)
		make_v2();
	limit_all();
	for (unsigned slot = 0; slot < options->slots; slot++)
		if (!cgroup_make_slot(slot))
			fatal("cannot make the control groups of slot %u below %s", slot, cgroup_tree.own[CONTROLLER_MEMORY]);
	if (cgroup_tree.version == 1)
		keep_one_frozen();
}

void cgroups_remove(void)
{
	char text[PATH_MAX + 16];

	if (!owned) {
		/* The groups of another jaild are not empty, so rmdir fails on them. */
		for (unsigned c = 0; c < CONTROLLERS && cgroup_tree.version != 0; c++)
			(void)rmdir(cgroup_tree.own[c]);
		(void)(cgroup_tree.version == 2 && rmdir(v2_top) == 0);
		return;
	}
	owned = false;
	for (unsigned c = 0; c < CONTROLLERS; c++)
		if (cgroup_hierarchy((enum controller)c) == c)
			for (unsigned slot = 0; slot < settings->slots; slot++) {
				snprintf(text, sizeof(text), "slot-%u", slot);
				if (!cgroup_remove((enum controller)c, text))
					log_line(LOG_ERROR, (int)slot, errno, "a control group cannot be removed");
			}
	if (cgroup_tree.version == 1 && !cgroup_remove(CONTROLLER_FREEZER, FROZEN_GROUP))
		log_line(LOG_ERROR, -1, 0, "a control group cannot be removed");
	if (cgroup_tree.version == 2) {
		unmake_v2();
		return;
	}
	for (unsigned c = 0; c < CONTROLLERS; c++)
		if (rmdir(cgroup_tree.own[c]) < 0 && errno != ENOENT)
			log_line(LOG_ERROR, -1, errno, "the control group cannot be removed");
}

const char *cgroups_version(void)
{
	static const char *const names[] = {"none", "v1", "v2"};

	return names[cgroup_tree.version];
}
