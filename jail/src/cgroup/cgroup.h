/*
 * Control groups, one per slot: <own>/slot-<n> on the v1 hierarchies of freezer, memory, pids, cpu and cpuacct,
 * <own>/jails/slot-<n> on the v2 hierarchy. jaild changes no group that it did not make. The limits of the parent
 * group hold for all slots together; jaild, its keepers and its zygotes are outside it. The root of jaild's user
 * namespace may write only the files by which a process enters a slot.
 *
 * The master makes, cleans and removes the groups and keeps their directories open. A keeper holds one `struct
 * cgroup`: the open control files of its slot, and no directory. The first process of a jail is created in its
 * group (v2) or joins it (v1), because moving another process takes milliseconds on a busy machine.
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
	int clone_fd;		       /* v2: directory for CLONE_INTO_CGROUP, closed after the clone */
	int join_fd[CGROUP_JOIN_MAX];  /* v1: `tasks` files, closed after the clone */
	int pids, kill, usage, stat, peak, oom, cpu, pids_limit, pids_events, memory_limit, swap_limit;
	uint64_t usage_base, cpu_base, oom_base, refused_base;
	struct freezer freezer;
};

/* The memory charged to the run now, by kind. */
struct cgroup_usage {
	uint64_t memory;     /* total */
	uint64_t page_cache; /* clean pages of image files */
	uint64_t shared;     /* tmpfs, memfd, shared anonymous pages */
};

/* Counted since cgroup_begin. The peak is at least one charge batch of the kernel: less cannot be measured. */
struct cgroup_totals {
	uint64_t memory_peak, cpu_us, oom_kills;
};

/* Master. Finds the hierarchies, removes groups of an earlier jaild, makes all groups; fatal on failure. */
void cgroups_make(const struct options *options);
/* Kills the remaining processes of a slot's groups, frozen or not; true when the groups are there and empty. */
bool cgroups_clean(unsigned slot);
void cgroups_remove(void);
/* "v1", "v2" or "none". */
const char *cgroups_version(void);

/* Whether the kernel accounts swap, so that the limits of a run can forbid it. */
bool cgroup_forbids_swap(unsigned slot);

/* In a keeper that has opened its control files: closes the directories of the tree, before the jail exists. */
void cgroups_forget(void);

/* Keeper. All return -1 with errno on failure. */
int cgroup_open(struct cgroup *cgroup, unsigned slot);
int cgroup_join(const struct cgroup *cgroup);
void cgroup_seal(struct cgroup *cgroup);
/* The first call records the baseline: memory charged from then on is the run's. cgroup_begin calls it too. */
int cgroup_count_memory(struct cgroup *cgroup);
int cgroup_begin(struct cgroup *cgroup, uint64_t memory_max, uint64_t pids_max);
int cgroup_memory(const struct cgroup *cgroup, uint64_t *bytes);
/* The same without the baseline. */
int cgroup_run_memory(const struct cgroup *cgroup, uint64_t *bytes);
/* The kernel's text with the group's CPU time: two texts are equal when nothing ran in between. */
void cgroup_cpu_text(const struct cgroup *cgroup, char *text, size_t size);
int cgroup_cpu_us(const struct cgroup *cgroup, uint64_t *us);
int cgroup_oom_kills(const struct cgroup *cgroup, uint64_t *count);
/* Processes and threads that the limit refused since cgroup_begin. */
int cgroup_forks_refused(const struct cgroup *cgroup, uint64_t *count);
int cgroup_usage(const struct cgroup *cgroup, struct cgroup_usage *usage);
int cgroup_totals(const struct cgroup *cgroup, struct cgroup_totals *totals);
/* Kills frozen processes too. They may die after this returns. */
void cgroup_kill(struct cgroup *cgroup);
bool cgroup_is_empty(const struct cgroup *cgroup);

#endif
