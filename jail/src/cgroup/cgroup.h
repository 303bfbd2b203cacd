/*
 * Control groups: <own>/slot-<n> for every slot, on the v1 hierarchies of freezer, memory, pids, cpu and
 * cpuacct, <own>/jails/slot-<n> on the v2 hierarchy. jaild touches nothing outside
 * of the groups that it made. Limits of the group above the slots hold for all of them together; jaild, its keepers and zygotes
 * are in none of them. What may be written by the root of jaild's user namespace are the files by which a process enters a slot.
 *
 * The master makes, cleans and removes the groups, and holds its own ones open. A keeper holds one `struct
 * cgroup`: open control files of its slot and no directory. The first process
 * of a jail is born inside (v2) or joins itself (v1): moving another process
 * costs milliseconds on a busy machine.
 */
#ifndef JAIL_CGROUP_H
#define JAIL_CGROUP_H

#include "cgroup/freezer.h"
#include "master/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_JOIN_MAX 5

struct cgroup {
	bool enabled;
	int clone_fd;		       /* v2: directory to be born in, closed after the clone */
	int join_fd[CGROUP_JOIN_MAX];  /* v1: `tasks` files, closed after the clone */
	int pids, kill, usage, stat, peak, oom, cpu, pids_limit, pids_events, memory_limit, swap_limit;
	uint64_t usage_base, cpu_base, oom_base, refused_base;
	struct freezer freezer;
};

/* What is charged to the run now, and which part of it is what. */
struct cgroup_usage {
	uint64_t memory;     /* everything */
	uint64_t page_cache; /* clean pages of image files */
	uint64_t shared;     /* tmpfs, memfd, shared anonymous pages */
};

/* Since cgroup_begin. */
struct cgroup_totals {
	uint64_t memory_peak, cpu_us, oom_kills;
};

/* Master. Finds the hierarchies, removes what an earlier life left, makes all groups; fatal on failure. */
void cgroups_make(const struct options *options);
/* Kills what is left in a slot's groups, frozen or not; true when they are empty. */
bool cgroups_clean(unsigned slot);
void cgroups_remove(void);
/* "v1", "v2" or "none". */
const char *cgroups_version(void);

/* Whether the kernel accounts swap, so that the limits of runs forbid it. */
bool cgroup_forbids_swap(unsigned slot);

/* In a keeper that has opened what it needs: lets go of the directories of the tree, before there is a jail. */
void cgroups_forget(void);

/* Keeper. All return -1 with errno on failure. */
int cgroup_open(struct cgroup *cgroup, unsigned slot);
int cgroup_join(const struct cgroup *cgroup);
void cgroup_seal(struct cgroup *cgroup);
/* From the first call on, what is charged is the run's; cgroup_begin makes it when nobody has. */
int cgroup_count_memory(struct cgroup *cgroup);
int cgroup_begin(struct cgroup *cgroup, uint64_t memory_max, uint64_t pids_max);
int cgroup_memory(const struct cgroup *cgroup, uint64_t *bytes);
/* The same without what was charged before the run began. */
int cgroup_run_memory(const struct cgroup *cgroup, uint64_t *bytes);
/* The text that states the CPU time of the group: two are equal when nothing ran in between. */
void cgroup_cpu_text(const struct cgroup *cgroup, char *text, size_t size);
int cgroup_cpu_us(const struct cgroup *cgroup, uint64_t *us);
int cgroup_oom_kills(const struct cgroup *cgroup, uint64_t *count);
/* Processes and threads that the limit refused since cgroup_begin. */
int cgroup_forks_refused(const struct cgroup *cgroup, uint64_t *count);
int cgroup_usage(const struct cgroup *cgroup, struct cgroup_usage *usage);
int cgroup_totals(const struct cgroup *cgroup, struct cgroup_totals *totals);
/* Also what is frozen; it may die only after this returned. */
void cgroup_kill(struct cgroup *cgroup);
bool cgroup_is_empty(const struct cgroup *cgroup);

#endif
