#include "check/check.h"

#include "cgroup/cgroup.h"
#include "lib/util.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_MS 10000
#define CLEAN_MS 10000
#define SOME_PERCENT 50

typedef void (*report_function)(const struct feature *feature, int error);

static int run_probe(probe_function probe, const struct options *options)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(probe(options) & 0xff);
	if (pid < 0)
		return errno;
	for (unsigned waited = 0; waitpid(pid, &status, WNOHANG) == 0; waited++) {
		if (waited == PROBE_MS) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return ETIMEDOUT;
		}
		sleep_ms(1);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static bool try_features(const struct feature *features, unsigned count, const struct options *options,
			 report_function report)
{
	bool safe = true;

	for (unsigned i = 0; i < count; i++) {
		int error = run_probe(features[i].probe, options);

		report(&features[i], error);
		safe = safe && (error == 0 || features[i].weight != NEEDED);
	}
	return safe;
}

static void log_missing(const struct feature *feature, int error)
{
	if (error != 0 && feature->weight == NEEDED)
		log_line(LOG_FATAL, -1, error, "%s does not work on this machine: %s", feature->name, feature->fix);
	else if (error != 0 && feature->weight == RECOMMENDED)
		log_line(LOG_WARN, -1, error, "%s: %s", feature->name, feature->fix);
}

bool check_kernel(const struct options *options)
{
	return try_features(kernel_features, kernel_feature_count, options, log_missing);
}

/* Kills processes that a probe left in the groups, with the code that cleans up after runs. */
static bool groups_are_clean(void)
{
	bool clean = cgroups_clean(0);

	for (unsigned waited = 0; !clean && waited < CLEAN_MS; waited++) {
		sleep_ms(1);
		clean = cgroups_clean(0);
	}
	/* The master has adopted the orphans of probes. */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return clean;
}

static bool try_groups(const struct options *options, report_function report)
{
	static const struct feature emptied = {
		"cgroup-kill", NULL, "processes of a control group do not die; see the kernel log", NEEDED};
	bool safe = try_features(group_features, group_feature_count, options, report);
	bool clean = groups_are_clean();

	report(&emptied, clean ? 0 : EBUSY);
	return safe && clean;
}

bool check_groups(const struct options *options)
{
	return options->no_cgroups || try_groups(options, log_missing);
}

static void print_line(const char *grade, const struct feature *feature, int error)
{
	printf("%s %s %s (%s)\n", grade, feature->name, feature->fix, strerror(error));
}

static void print_result(const struct feature *feature, int error)
{
	static const char *const grades[] = {"fail", "warn", "note"};

	if (error == 0)
		printf("ok %s\n", feature->name);
	else
		print_line(grades[feature->weight], feature, error);
	/* A forked child would print the buffer again. */
	fflush(stdout);
}

static bool groups_made;

static void print_unmade(void)
{
	static const struct feature groups = {
		"cgroups", NULL,
		"cgroup v2 with memory, pids and cpu delegated to jaild, or v1 with freezer, memory, pids, cpu and cpuacct",
		NEEDED};

	if (!groups_made)
		print_result(&groups, ENOENT);
	cgroups_remove();
}

bool check_system(const struct options *given)
{
	struct options options = *given;
	bool safe = try_features(kernel_features, kernel_feature_count, given, print_result);
	char name[96];

	if (options.no_cgroups) {
		puts("fail limits --no-cgroups leaves memory, processes and CPU unlimited");
		return false;
	}
	snprintf(name, sizeof(name), "%s-check-%d", given->cgroup, getpid());
	options.cgroup = name;
	options.slots = 1;
	options.cpu_percent = SOME_PERCENT;
	/* A failure in cgroups_make ends the process. */
	atexit(print_unmade);
	cgroups_make(&options);
	groups_made = true;
	printf("ok cgroups %s\n", cgroups_version());
	fflush(stdout);
	safe = try_groups(&options, print_result) && safe;
	cgroups_remove();
	return safe;
}
