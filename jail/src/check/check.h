/*
 * Checks that this machine supports jails. Each required feature is used once, in a process of its own. jaild runs the
 * checks at every start and does not listen when a feature is missing.
 */
#ifndef JAIL_CHECK_H
#define JAIL_CHECK_H

#include "master/options.h"

#include <stdbool.h>

/* Runs in a child: 0 when the feature works, otherwise an errno. */
typedef int (*probe_function)(const struct options *options);

/* The consequence of a missing feature. */
enum weight {
	NEEDED,	     /* jaild does not start */
	RECOMMENDED, /* jails have the weakness that `fix` names */
	OPTIONAL,    /* none with this configuration */
};

struct feature {
	const char *name;
	probe_function probe;
	const char *fix; /* for a feature that is not needed: the weakness without it, too */
	enum weight weight;
};

extern const struct feature kernel_features[], group_features[];
extern const unsigned kernel_feature_count, group_feature_count;

/* At start: logs missing features; false when a needed one is missing. */
bool check_kernel(const struct options *options);
/* The same for control groups, which must exist; uses the groups of slot 0. */
bool check_groups(const struct options *options);

/*
 * `jaild --check`: prints one line per feature: "ok <feature>", or "fail", "warn" or "note" with the feature and the
 * fix. It makes control groups of its own. False as above.
 */
bool check_system(const struct options *options);

/* Whether a crash dump stays in the jail: core(5) sends it where this pattern points. */
bool core_pattern_is_safe(const char *pattern);

#endif
