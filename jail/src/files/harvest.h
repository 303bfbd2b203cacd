/*
 * Lists the workspace of a run whose processes are dead. An attacker made the tree: every step is relative to an open
 * directory, stays beneath the workspace, follows no link and never blocks, and the walk is bounded in entries and time.
 */
#ifndef JAIL_HARVEST_H
#define JAIL_HARVEST_H

#include "files/listing.h"
#include "keeper/conn.h"
#include "keeper/stage.h"

/*
 * With `whole` the listing includes the content of hidden directories, every directory, and the targets of symlinks.
 * Without it, hidden directories without inputs are skipped, other directories are listed only when they are empty, and
 * symlinks are omitted by type.
 */
void harvest(int workspace, const struct inputs *inputs, bool whole, struct listing *listing);

/* Answers a 'G' frame: the bytes of a listed file, or that it cannot be read. */
void harvest_send_file(int workspace, const struct listing *listing, uint32_t number, struct conn *conn);

#endif
