/*
 * Whether this machine can hold a jail: each feature that a jail needs is tried by using it, in
 * a process of its own. jaild does it at every start and does not listen when one is missing.
 */
#ifndef JAIL_CHECK_H
#define JAIL_CHECK_H

#include "master/options.h"

#include <stdbool.h>

/* Runs in a child: 0 when the feature works, otherwise an errno. */
typedef int (*probe_function)(const struct options *options);

/* What a feature that is missing means. */
enum weight {
	NEEDED,	     /* no jail */
	RECOMMENDED, /* a jail with a weakness that is named */
	OPTIONAL,    /* nothing for what is configured here */
};

struct feature {
	const char *name;
	probe_function probe;
	const char *fix; /* or, when it is not needed, what is weaker without it */
	enum weight weight;
};

extern const struct feature kernel_features[], group_features[];
extern const unsigned kernel_feature_count, group_feature_count;

/* At the start: logs what is missing; false when something is that is needed. */
bool check_kernel(const struct options *options);
/* The same for control groups, which have been made; uses those of slot 0. */
bool check_groups(const struct options *options);

/*
 * `jaild --check`: prints "ok <feature>", or "fail", "warn" or "note" with the feature and the
 * fix, for everything; the control groups get a name of their own. False as above.
 */
bool check_system(const struct options *options);

/* Whether a crash in a jail stays there: core(5) sends the dump to what this pattern names. */
bool core_pattern_is_safe(const char *pattern);

#endif
