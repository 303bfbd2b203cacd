#include "init/proc.h"

#include "lib/sys.h"
#include "lib/util.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char *const fact_names[FACT_FILES] = {"meminfo", "stat"};

/* Entries that proc_make_covers makes. The list of locks is empty; the keeper reads the kernel's own list, which it opened before. */
static const char *const static_names[] = {
	"cpuinfo", "filesystems", "loadavg", "locks", "uptime", "version", "vmstat", "sys"};

/* Links to the reader's own process. */
static const struct {
	const char *name, *target;
} links[] = {{"mounts", "self/mounts"}, {"net", "self/net"}};

static const struct {
	const char *path;
	const char *text;
} settings[] = {
	{"sys/fs", NULL},
	{"sys/fs/file-max", "1048576\n"},
	{"sys/fs/pipe-max-size", "1048576\n"},
	{"sys/kernel", NULL},
	{"sys/kernel/cap_last_cap", "40\n"},
	{"sys/kernel/domainname", "(none)\n"},
	{"sys/kernel/hostname", "sandbox\n"},
	{"sys/kernel/ngroups_max", "65536\n"},
	{"sys/kernel/ostype", "Linux\n"},
	{"sys/kernel/overflowgid", "65534\n"},
	{"sys/kernel/overflowuid", "65534\n"},
	{"sys/kernel/pid_max", "32768\n"},
	{"sys/kernel/randomize_va_space", "2\n"},
	{"sys/kernel/seccomp", NULL},
	{"sys/kernel/threads-max", "32768\n"},
	{"sys/net", NULL},
	{"sys/net/core", NULL},
	{"sys/net/core/somaxconn", "4096\n"},
	{"sys/vm", NULL},
	{"sys/vm/max_map_count", "65530\n"},
	{"sys/vm/mmap_min_addr", "65536\n"},
	{"sys/vm/overcommit_memory", "0\n"},
	{"sys/vm/swappiness", "0\n"},
	{"filesystems", "nodev\tproc\nnodev\ttmpfs\n"},
	{"loadavg", "0.00 0.00 0.00 1/2 2\n"},
	{"uptime", "0.01 0.01\n"},
	{"vmstat", "pgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgfault 0\npgmajfault 0\n"},
	{"locks", ""},
};

static int make_file(int directory, const char *path, const char *text)
{
	int fd = openat(directory, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444), result;

	if (fd < 0)
		return -1;
	result = write_all(fd, text, strlen(text));
	close(fd);
	return result;
}

static int make_cpuinfo(int directory)
{
	char text[512 * 64];
	size_t used = 0;
	cpu_set_t cpus;
	int count;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return -1;
	count = CPU_COUNT(&cpus);
	text[0] = '\0';
	for (int i = 0; i < count && used + 512 < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"processor\t: %d\nvendor_id\t: sandbox\nmodel name\t: sandbox\ncpu MHz\t\t: 1000.000\n"
			"physical id\t: 0\nsiblings\t: %d\ncore id\t\t: %d\ncpu cores\t: %d\n\n", i, count, i, count);
	return make_file(directory, "cpuinfo", text);
}

/* Contains only what uname(2) returns to every program. */
static int make_versions(int directory)
{
	struct utsname system;
	char text[sizeof(system)];

	if (uname(&system) < 0 || make_file(directory, "sys/kernel/osrelease", system.release) < 0)
		return -1;
	snprintf(text, sizeof(text), "%s version %s %s\n", system.sysname, system.release, system.version);
	return make_file(directory, "version", text);
}

int proc_make_covers(int directory)
{
	for (size_t i = 0; i < COUNT(settings); i++) {
		if (i == 0 && mkdirat(directory, "sys", 0555) < 0)
			return -1;
		if (settings[i].text == NULL) {
			if (mkdirat(directory, settings[i].path, 0555) < 0)
				return -1;
		} else if (make_file(directory, settings[i].path, settings[i].text) < 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlinkat(links[i].target, directory, links[i].name) < 0)
			return -1;
	return make_versions(directory) < 0 ? -1 : make_cpuinfo(directory);
}

int proc_make_facts(int directory, int fds[FACT_FILES])
{
	for (size_t i = 0; i < FACT_FILES; i++) {
		fds[i] = openat(directory, fact_names[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		if (fds[i] < 0)
			return -1;
	}
	return 0;
}

int proc_write_facts(const int fds[FACT_FILES], uint64_t memory_bytes)
{
	uint64_t kib = memory_bytes / 1024;
	int64_t now = (int64_t)time(NULL);
	char text[FACT_FILES][1024];

	snprintf(text[0], sizeof(text[0]),
		 "MemTotal:       %8" PRIu64 " kB\nMemFree:        %8" PRIu64 " kB\n"
		 "MemAvailable:   %8" PRIu64 " kB\nBuffers:               0 kB\n"
		 "Cached:                0 kB\nSwapCached:            0 kB\n"
		 "Active:                0 kB\nInactive:              0 kB\n"
		 "SwapTotal:             0 kB\nSwapFree:              0 kB\n"
		 "Dirty:                 0 kB\nShmem:                 0 kB\n"
		 "Slab:                  0 kB\nSReclaimable:          0 kB\n",
		 kib, kib, kib);
	snprintf(text[1], sizeof(text[1]),
		 "cpu  1 0 1 1 0 0 0 0 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\nintr 0\nctxt 0\nbtime %" PRId64
		 "\nprocesses 2\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n", now);
	for (size_t i = 0; i < FACT_FILES; i++)
		if (pwrite(fds[i], text[i], strlen(text[i]), 0) != (ssize_t)strlen(text[i]))
			return -1;
	return 0;
}

static int cover(const char *directory, const char *name)
{
	char source[64], target[64];

	snprintf(source, sizeof(source), "%s/%s", directory, name);
	snprintf(target, sizeof(target), "/proc/%s", name);
	/* An entry that this kernel lacks needs no cover. */
	return sys_mount(source, target, NULL, MS_BIND, NULL) < 0 && errno != ENOENT ? -1 : 0;
}

/* Mounts a link over a link and follows neither. */
static int cover_link(const char *name)
{
	char path[64];
	int tree, result, saved;

	snprintf(path, sizeof(path), COVERS_PATH "/%s", name);
	tree = sys_open_tree(AT_FDCWD, path);
	if (tree < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%s", name);
	result = sys_move_mount(tree, path);
	saved = errno;
	close(tree);
	errno = saved;
	return result;
}

int proc_cover(void)
{
	for (size_t i = 0; i < FACT_FILES; i++)
		if (cover(FACTS_PATH, fact_names[i]) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(static_names); i++)
		if (cover(COVERS_PATH, static_names[i]) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(links); i++)
		if (cover_link(links[i].name) < 0)
			return -1;
	return proc_hide();
}

int proc_hide(void)
{
	return sys_mount(NULL, "/proc", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid");
}
