/* Frames to a client about its run: captured output, a pause, the end. */
#ifndef JAIL_REPORT_H
#define JAIL_REPORT_H

#include "keeper/capture.h"
#include "keeper/conn.h"
#include "keeper/run.h"

/* The counters of a paused run. */
struct pause {
	uint64_t wall_us, cpu_us, memory;
};

/* Sends the output that was not sent yet, as far as the peer takes it without waiting. */
void report_output(struct conn *conn, struct capture streams[2]);

/* Both send the captured output that is not sent yet: before the pause, and after the end. */
void report_pause(struct conn *conn, const struct pause *pause, struct capture streams[2]);
void report_end(struct conn *conn, const struct result *result, struct capture streams[2]);

#endif
