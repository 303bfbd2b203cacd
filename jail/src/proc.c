#include "proc.h"

#include "sys.h"
#include "util.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define ENTRIES_MAX 256
#define EMPTY_FILE "empty"
#define EMPTY_DIRECTORY "none"

/* Links to the reader's own process, and entries that show only the jail's own namespaces. */
static const char *const open_entries[] = {"self", "thread-self", "mounts", "net", "version", "sysvipc"};

static const char *const fact_names[FACT_FILES] = {"meminfo", "stat"};

/* Names of synthetic entries that proc_make_covers makes. */
static const char *const static_names[] = {"cpuinfo", "filesystems", "loadavg", "uptime", "vmstat", "sys"};

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
	{EMPTY_FILE, ""},
	{EMPTY_DIRECTORY, NULL},
};

static struct cover {
	char target[80]; /* in /proc */
	char source[96]; /* below the covers or the facts */
} covers[ENTRIES_MAX];
static size_t cover_count;

static bool is_in(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

/* Their paths are made here, once, and not in each jail. */
static int add_cover(const char *name, const char *directory, const char *source)
{
	struct cover *cover = &covers[cover_count];

	if (cover_count == ENTRIES_MAX ||
	    (size_t)snprintf(cover->target, sizeof(cover->target), "/proc/%s", name) >= sizeof(cover->target) ||
	    (size_t)snprintf(cover->source, sizeof(cover->source), "%s/%s", directory, source) >= sizeof(cover->source))
		return -1;
	cover_count++;
	return 0;
}

int proc_scan(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *found;
	bool whole;

	cover_count = 0;
	while (errno = 0, proc && (found = readdir(proc))) {
		const char *name = found->d_name, *source = EMPTY_FILE;
		bool fact = is_in(name, fact_names, COUNT(fact_names));
		struct stat st;

		if (isdigit((unsigned char)name[0]) || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    is_in(name, open_entries, COUNT(open_entries)))
			continue;
		if (fstatat(dirfd(proc), name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue;
			closedir(proc);
			return -1;
		}
		if (fact || is_in(name, static_names, COUNT(static_names)))
			source = name;
		else if (S_ISDIR(st.st_mode))
			source = EMPTY_DIRECTORY;
		/* A link outside of the open entries cannot be covered: nothing is safe then. */
		if (S_ISLNK(st.st_mode) || add_cover(name, fact ? FACTS_PATH : COVERS_PATH, source) < 0) {
			closedir(proc);
			errno = EXDEV;
			return -1;
		}
	}
	/* An entry that was not seen is an entry without a cover. */
	whole = proc && errno == 0;
	if (proc)
		closedir(proc);
	return whole && cover_count > 0 ? 0 : -1;
}

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

int proc_make_covers(int directory)
{
	struct utsname system;

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
	if (uname(&system) < 0 || make_file(directory, "sys/kernel/osrelease", system.release) < 0)
		return -1;
	return make_cpuinfo(directory);
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

int proc_cover(void)
{
	for (size_t i = 0; i < cover_count; i++)
		/* An entry that came and went with a kernel module needs no cover. */
		if (sys_mount(covers[i].source, covers[i].target, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
			return -1;
	return 0;
}
