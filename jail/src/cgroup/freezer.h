/*
 * Stops every process of one control group at once and lets them go on: the freezer
 * hierarchy of v1 or cgroup.freeze of v2. A frozen process uses no CPU and, on v1,
 * dies of a SIGKILL only when it is thawed: the process that kills a group must thaw it.
 */
#ifndef JAIL_FREEZER_H
#define JAIL_FREEZER_H

#include <stdbool.h>
#include <stdint.h>

#define FREEZE_US 2000000 /* a process in the middle of an uninterruptible wait is met in far less */

struct freezer {
	int version; /* of the control groups; 0: none */
	int control, state;
	bool frozen; /* as far as this process knows */
};

/* The file that freezes a group, and the file that shows when all of it is frozen. */
const char *freezer_control_file(int version);
const char *freezer_state_file(int version);
/* Whether the text of the state file says so. */
bool freezer_text_is_frozen(int version, const char *text);

/* Opens the files of a group that lies below a directory; -1 and errno on failure. */
int freezer_open(struct freezer *freezer, int version, int directory, const char *group);
void freezer_close(struct freezer *freezer);

/* Returns when everything stands still; ETIMEDOUT, and thawed again, when something does not in this time. */
int freezer_freeze(struct freezer *freezer, uint64_t within_us);
/* Async-signal-safe. */
int freezer_thaw(struct freezer *freezer);
/* Called by the process that froze it; does nothing in a hierarchy of v1 that cannot. */
void freezer_thaw_group(int version, int directory, const char *group);

#endif
