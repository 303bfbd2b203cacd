/*
 * What a keeper tells its master: lines for the log, and whether its run is paused. Each keeper has a pipe of its own, its
 * standard error, that keeps what is written at once together: the master knows who speaks, believes nothing but that,
 * waits for nobody, and stops to listen to a keeper that says too much.
 */
#ifndef JAIL_JOURNAL_H
#define JAIL_JOURNAL_H

#include "lib/util.h"

#include <stdbool.h>
#include <sys/types.h>

struct journal {
	int fd; /* the master's end; -1: none */
	bool ended; /* the keeper has no end any more: nothing will come */
	unsigned lines;
	bool paused;
};

/* Master. The keeper's end, -1 on failure. */
int journal_open(struct journal *journal);
/* Takes what is there, at most a few words at a time. */
void journal_read(struct journal *journal, int slot);
/* Of a dead keeper: reads the rest. */
void journal_close(struct journal *journal, int slot);

/* Keeper: its standard streams are its end from here on, and so is its log. */
int journal_begin(int end);
/* A paused run does not count among those that use the machine: the master may prepare one more jail. */
void journal_send_paused(bool paused);

#endif
