/* Frames to a client about its run: captured output, a pause, the end. */
#ifndef JAIL_REPORT_H
#define JAIL_REPORT_H

#include "keeper/capture.h"
#include "keeper/conn.h"
#include "keeper/run.h"

/* The counters of a run that stands still. */
struct pause {
	uint64_t wall_us, cpu_us, memory;
};

/* Both send kept output that was not sent before: the pause after it, the end before it. */
void report_pause(struct conn *conn, const struct pause *pause, struct capture streams[2]);
void report_end(struct conn *conn, const struct result *result, struct capture streams[2]);

#endif
