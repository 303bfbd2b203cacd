/*
 * Limits that a program reached without being killed: its calls failed with ordinary errors. Detected from outside, by
 * the counters of the control group and by polling the three file systems: one that is full only between two polls is
 * missed.
 */
#ifndef JAIL_REACHED_H
#define JAIL_REACHED_H

#include <stdint.h>

struct jail;
struct limits;

/* Numbers of the protocol. */
enum reached_kind {
	REACHED_PROCESSES, REACHED_WORKSPACE_BYTES, REACHED_WORKSPACE_FILES, REACHED_TMP_BYTES,
	REACHED_TMP_FILES, REACHED_SHM_BYTES, REACHED_SHM_FILES, REACHED_KINDS,
};

/* The limits that were reached; 0: not reached. */
struct reached {
	uint64_t limit[REACHED_KINDS];
};

/* Records the file systems that are full now. */
void reached_look_at_files(struct reached *reached, const struct jail *jail);

/* Records whether a fork was refused since the run began. */
void reached_look_at_processes(struct reached *reached, const struct jail *jail, const struct limits *limits);

#endif
