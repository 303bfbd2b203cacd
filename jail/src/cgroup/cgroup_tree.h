/* Where the groups are: shared by cgroup_tree.c and cgroup_end.c (master) and cgroup.c (keeper) only. */
#ifndef JAIL_CGROUP_TREE_H
#define JAIL_CGROUP_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The freezer first: what is frozen dies only there, and then it is gone from all others. */
enum controller {
	CONTROLLER_FREEZER, CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_CPU, CONTROLLER_CPUACCT, CONTROLLERS,
};

struct cgroup_tree {
	int version; /* 0: none, 1, 2 */
	/* The group above the slots for each controller; on v2 all are the same. */
	char own[CONTROLLERS][PATH_MAX];
	/* The same groups, open, so that files of slots are found by short ways; -1 in a keeper that has opened its own files. */
	int fd[CONTROLLERS];
};

extern struct cgroup_tree cgroup_tree;

/* The first controller of the hierarchy that holds this one: hierarchies may be mounted together. */
enum controller cgroup_hierarchy(enum controller controller);

/* Room for "slot-<n>/<control file>". */
#define SLOT_PATH 64

/* Master. Makes a slot's groups, as far as they are not there; fatal on failure. */
void cgroup_make_slot(unsigned slot);
/* Kills every process of a group of jaild's, thaws it, and removes it when it is empty; false when it cannot be removed. */
bool cgroup_remove(enum controller hierarchy, const char *name);

/* Finds the directory below which jaild may make its own group, without making anything. */
bool cgroup_find_v2(char *base, size_t size);
bool cgroup_find_v1(enum controller controller, char *base, size_t size);

#endif
