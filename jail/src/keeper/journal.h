/*
 * Messages of a keeper to its master: lines for the log, and whether its run is paused. Each keeper has its own pipe of
 * packets as standard error, so the master knows the sender. It trusts nothing else in a message, never waits for one, and
 * closes the pipe of a keeper that sends too many.
 */
#ifndef JAIL_JOURNAL_H
#define JAIL_JOURNAL_H

#include "lib/util.h"

#include <stdbool.h>
#include <sys/types.h>

struct journal {
	int fd; /* the master's end; -1: none */
	bool ended; /* the keeper has closed its end */
	unsigned lines;
	bool paused;
};

/* Master. The keeper's end, -1 on failure. */
int journal_open(struct journal *journal);
/* Handles the pending messages, a bounded number at a time. */
void journal_read(struct journal *journal, int slot);
/* After the death of the keeper: handles the remaining messages and closes the pipe. */
void journal_close(struct journal *journal, int slot);

/* Keeper. Redirects its standard streams and its log to its end of the pipe. */
int journal_begin(int end);
/*
 * Reports that the run is paused, or that it continues. Also reports an ended run as paused while its client keeps the jail
 * and fetches nothing. A paused run does not count as active, so the master may prepare one more jail.
 */
void journal_send_paused(bool paused);

#endif
