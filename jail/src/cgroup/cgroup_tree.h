/* The paths and descriptors of the groups. Only cgroup_tree.c, cgroup_end.c (master) and cgroup.c (keeper) use them. */
#ifndef JAIL_CGROUP_TREE_H
#define JAIL_CGROUP_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The freezer is first: cgroup_join enters the groups in this order, and cgroups_clean relies on it. */
enum controller {
	CONTROLLER_FREEZER, CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_CPU, CONTROLLER_CPUACCT, CONTROLLERS,
};

struct cgroup_tree {
	int version; /* 0: none, 1, 2 */
	/* The group above the slots for each controller; on v2 all are the same. */
	char own[CONTROLLERS][PATH_MAX];
	/* The same groups, open, for short relative paths; -1 in a keeper after it has opened its control files. */
	int fd[CONTROLLERS];
};

extern struct cgroup_tree cgroup_tree;

/* The first controller of this one's hierarchy: several controllers may share one mount. */
enum controller cgroup_hierarchy(enum controller controller);

/* Room for "slot-<n>/<control file>". */
#define SLOT_PATH 64

/* Master. Makes the missing groups of a slot. False with errno on failure; groups that exist by then may lack settings. */
bool cgroup_make_slot(unsigned slot);
/*
 * v2: enables those of jaild's controllers that the children of `group` lack. `added`, unless NULL, gets a text that
 * disables them again. -1 with errno on failure: EBUSY when the group itself contains processes.
 */
int cgroup_enable(const char *group, char *added, size_t size);
/* Kills every process of one of jaild's groups, thaws the group and removes it; false when it cannot be removed. */
bool cgroup_remove(enum controller hierarchy, const char *name);

/* Whether a list, which may end with a line feed, has the word. */
bool cgroup_has_word(const char *text, const char *word, char separator);
/* Finds the directory in which jaild may make its own group, and makes nothing. `given`: that directory, or NULL. */
bool cgroup_find_v2(const char *given, char *base, size_t size);
/* The v2 group of this process. */
bool cgroup_find_own(char *base, size_t size);
bool cgroup_find_v1(enum controller controller, char *base, size_t size);

#endif
