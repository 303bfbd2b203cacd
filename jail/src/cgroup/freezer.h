/*
 * Freezes and thaws all processes of one control group, with the freezer hierarchy of v1 or cgroup.freeze of v2. A
 * frozen process uses no CPU. On v1 it dies of a SIGKILL only after a thaw, so whatever kills a group must thaw it.
 */
#ifndef JAIL_FREEZER_H
#define JAIL_FREEZER_H

#include <stdbool.h>
#include <stdint.h>

#define FREEZE_US 2000000 /* far longer than ordinary uninterruptible waits take */

struct freezer {
	int version; /* of the control groups; 0: none */
	int control, state;
	bool frozen; /* by this process */
};

/* The file that freezes a group, and the file that shows whether every process in it is frozen. */
const char *freezer_control_file(int version);
const char *freezer_state_file(int version);
/* Parses the text of the state file. */
bool freezer_text_is_frozen(int version, const char *text);

/* Opens the files of a group in this directory; -1 and errno on failure. */
int freezer_open(struct freezer *freezer, int version, int directory, const char *group);
void freezer_close(struct freezer *freezer);

/* Returns when every process is frozen. Otherwise thaws the group and fails, after this time with ETIMEDOUT. */
int freezer_freeze(struct freezer *freezer, uint64_t within_us);
/* Async-signal-safe. */
int freezer_thaw(struct freezer *freezer);
/* Thaws a group without a struct freezer; does nothing in a v1 hierarchy without the freezer. */
void freezer_thaw_group(int version, int directory, const char *group);

#endif
