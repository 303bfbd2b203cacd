/* The keeper's side of control groups: it holds open the control files of one slot and nothing else. */
#include "cgroup/cgroup.h"

#include "cgroup/cgroup_tree.h"
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernel charges a group in batches of 64 pages. The baseline may contain a batch that the run uses up later. */
#define CHARGE_BATCH (64 * UINT64_C(4096))

static int open_control(unsigned slot, enum controller controller, const char *file, int flags)
{
	char path[SLOT_PATH];

	snprintf(path, sizeof(path), "slot-%u/%s", slot, file);
	return openat(cgroup_tree.fd[controller], path, flags | O_CLOEXEC);
}

bool cgroup_forbids_swap(unsigned slot)
{
	int fd = open_control(slot, CONTROLLER_MEMORY,
			      cgroup_tree.version == 2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes", O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int open_v1(struct cgroup *c, unsigned slot)
{
	for (unsigned i = 0; i < CONTROLLERS; i++) {
		if (cgroup_hierarchy((enum controller)i) != i)
			continue;
		c->join_fd[i] = open_control(slot, (enum controller)i, "tasks", O_WRONLY);
		if (c->join_fd[i] < 0)
			return -1;
	}
	c->pids = open_control(slot, CONTROLLER_PIDS, "pids.current", O_RDONLY);
	c->usage = open_control(slot, CONTROLLER_MEMORY, "memory.usage_in_bytes", O_RDONLY);
	c->stat = open_control(slot, CONTROLLER_MEMORY, "memory.stat", O_RDONLY);
	c->peak = open_control(slot, CONTROLLER_MEMORY, "memory.max_usage_in_bytes", O_RDWR);
	c->oom = open_control(slot, CONTROLLER_MEMORY, "memory.oom_control", O_RDONLY);
	c->memory_limit = open_control(slot, CONTROLLER_MEMORY, "memory.limit_in_bytes", O_WRONLY);
	c->swap_limit = open_control(slot, CONTROLLER_MEMORY, "memory.memsw.limit_in_bytes", O_WRONLY);
	c->pids_limit = open_control(slot, CONTROLLER_PIDS, "pids.max", O_WRONLY);
	c->pids_events = open_control(slot, CONTROLLER_PIDS, "pids.events", O_RDONLY);
	c->cpu = open_control(slot, CONTROLLER_CPUACCT, "cpuacct.usage", O_RDONLY);
	return 0;
}

static int open_v2(struct cgroup *c, unsigned slot)
{
	c->clone_fd = open_control(slot, CONTROLLER_MEMORY, "", O_RDONLY | O_DIRECTORY);
	if (c->clone_fd < 0)
		return -1;
	c->pids = open_control(slot, CONTROLLER_PIDS, "pids.current", O_RDONLY);
	c->kill = open_control(slot, CONTROLLER_MEMORY, "cgroup.kill", O_WRONLY);
	c->usage = open_control(slot, CONTROLLER_MEMORY, "memory.current", O_RDONLY);
	c->stat = open_control(slot, CONTROLLER_MEMORY, "memory.stat", O_RDONLY);
	c->peak = open_control(slot, CONTROLLER_MEMORY, "memory.peak", O_RDWR);
	if (c->peak < 0)
		c->peak = open_control(slot, CONTROLLER_MEMORY, "memory.peak", O_RDONLY);
	c->oom = open_control(slot, CONTROLLER_MEMORY, "memory.events", O_RDONLY);
	c->memory_limit = open_control(slot, CONTROLLER_MEMORY, "memory.max", O_WRONLY);
	c->pids_limit = open_control(slot, CONTROLLER_MEMORY, "pids.max", O_WRONLY);
	c->pids_events = open_control(slot, CONTROLLER_MEMORY, "pids.events", O_RDONLY);
	c->cpu = open_control(slot, CONTROLLER_MEMORY, "cpu.stat", O_RDONLY);
	return 0;
}

int cgroup_open(struct cgroup *c, unsigned slot)
{
	char group[SLOT_PATH];

	*c = (struct cgroup){
		.enabled = cgroup_tree.version != 0, .clone_fd = -1, .join_fd = {-1, -1, -1, -1, -1},
		.pids = -1, .kill = -1, .usage = -1, .stat = -1, .peak = -1, .oom = -1, .cpu = -1,
		.pids_limit = -1, .pids_events = -1, .memory_limit = -1, .swap_limit = -1,
	};
	if (!c->enabled)
		return 0;
	if ((cgroup_tree.version == 2 ? open_v2 : open_v1)(c, slot) < 0)
		return -1;
	snprintf(group, sizeof(group), "slot-%u", slot);
	if (freezer_open(&c->freezer, cgroup_tree.version, cgroup_tree.fd[CONTROLLER_FREEZER], group) < 0)
		return -1;
	if (c->pids < 0 || c->usage < 0 || c->stat < 0 || c->oom < 0 || c->cpu < 0 ||
	    c->memory_limit < 0 || c->pids_limit < 0 || c->pids_events < 0)
		return -1;
	return 0;
}

int cgroup_join(const struct cgroup *c)
{
	for (size_t i = 0; i < CGROUP_JOIN_MAX; i++)
		if (c->join_fd[i] >= 0 && write(c->join_fd[i], "0", 1) != 1)
			return -1;
	return 0;
}

/* Closes the descriptors that only the creation of the jail needs. Afterwards no directory of the tree is reachable. */
void cgroup_seal(struct cgroup *c)
{
	for (size_t i = 0; i < CGROUP_JOIN_MAX; i++) {
		if (c->join_fd[i] >= 0)
			close(c->join_fd[i]);
		c->join_fd[i] = -1;
	}
	if (c->clone_fd >= 0)
		close(c->clone_fd);
	c->clone_fd = -1;
}

static int write_number(int fd, uint64_t number)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%" PRIu64, number);

	return pwrite(fd, text, (size_t)n, 0) == n ? 0 : -1;
}

static int read_number(int fd, uint64_t *number)
{
	char text[32];

	if (read_fd_text(fd, text, sizeof(text)) <= 0)
		return -1;
	*number = strtoull(text, NULL, 10);
	return 0;
}

int cgroup_memory(const struct cgroup *c, uint64_t *bytes)
{
	return read_number(c->usage, bytes);
}

int cgroup_run_memory(const struct cgroup *c, uint64_t *bytes)
{
	if (cgroup_memory(c, bytes) < 0)
		return -1;
	*bytes = *bytes > c->usage_base ? *bytes - c->usage_base : 0;
	return 0;
}

static int cpu_total_us(const struct cgroup *c, uint64_t *us)
{
	char text[1024];

	if (read_fd_text(c->cpu, text, sizeof(text)) <= 0)
		return -1;
	*us = cgroup_tree.version == 2 ? keyed_number(text, "usage_usec")
				       : strtoull(text, NULL, 10) / 1000;
	return 0;
}

void cgroup_cpu_text(const struct cgroup *c, char *text, size_t size)
{
	if (c->enabled)
		(void)read_fd_text(c->cpu, text, size);
}

int cgroup_cpu_us(const struct cgroup *c, uint64_t *us)
{
	if (cpu_total_us(c, us) < 0)
		return -1;
	*us -= c->cpu_base;
	return 0;
}

int cgroup_oom_kills(const struct cgroup *c, uint64_t *count)
{
	char text[1024];

	if (read_fd_text(c->oom, text, sizeof(text)) <= 0)
		return -1;
	*count = keyed_number(text, "oom_kill") - c->oom_base;
	return 0;
}

int cgroup_forks_refused(const struct cgroup *c, uint64_t *count)
{
	char text[256];

	if (read_fd_text(c->pids_events, text, sizeof(text)) <= 0)
		return -1;
	*count = keyed_number(text, "max") - c->refused_base;
	return 0;
}

int cgroup_count_memory(struct cgroup *c)
{
	return !c->enabled || c->usage_base > 0 ? 0 : cgroup_memory(c, &c->usage_base);
}

int cgroup_begin(struct cgroup *c, uint64_t memory_max, uint64_t pids_max)
{
	if (!c->enabled)
		return 0;
	/* v1 refuses a memory limit above the limit of memory and swap: lift that first. */
	if (c->swap_limit >= 0 && pwrite(c->swap_limit, "-1", 2, 0) != 2)
		return -1;
	if (write_number(c->memory_limit, memory_max) < 0)
		return -1;
	if (c->swap_limit >= 0 && write_number(c->swap_limit, memory_max) < 0)
		return -1;
	if (write_number(c->pids_limit, pids_max) < 0)
		return -1;
	if (c->peak >= 0)
		(void)!pwrite(c->peak, "0", 1, 0);
	c->refused_base = c->oom_base = 0;
	if (cgroup_count_memory(c) < 0 || cpu_total_us(c, &c->cpu_base) < 0 || cgroup_forks_refused(c, &c->refused_base) < 0)
		return -1;
	return cgroup_oom_kills(c, &c->oom_base);
}

int cgroup_usage(const struct cgroup *c, struct cgroup_usage *usage)
{
	char text[8192];
	uint64_t file;

	if (cgroup_memory(c, &usage->memory) < 0 || read_fd_text(c->stat, text, sizeof(text)) <= 0)
		return -1;
	file = keyed_number(text, cgroup_tree.version == 2 ? "file" : "cache");
	usage->shared = keyed_number(text, "shmem");
	usage->page_cache = file > usage->shared ? file - usage->shared : 0;
	return 0;
}

int cgroup_totals(const struct cgroup *c, struct cgroup_totals *totals)
{
	uint64_t memory, peak;

	*totals = (struct cgroup_totals){0};
	if (!c->enabled)
		return 0;
	if (cgroup_memory(c, &memory) < 0 || cgroup_cpu_us(c, &totals->cpu_us) < 0)
		return -1;
	if (c->peak < 0 || read_number(c->peak, &peak) < 0 || peak < memory)
		peak = memory;
	totals->memory_peak = peak > c->usage_base + CHARGE_BATCH ? peak - c->usage_base : CHARGE_BATCH;
	return cgroup_oom_kills(c, &totals->oom_kills);
}

void cgroup_kill(struct cgroup *c)
{
	if (c->kill >= 0)
		(void)!pwrite(c->kill, "1", 1, 0);
	(void)freezer_thaw(&c->freezer);
}

bool cgroup_is_empty(const struct cgroup *c)
{
	uint64_t count;

	return !c->enabled || (read_number(c->pids, &count) == 0 && count == 0);
}
