/*
 * The listing of a workspace: collected in any order, sent in the order of path
 * bytes, bounded in entries and in memory. Pure: it makes no system call on files.
 */
#ifndef JAIL_LISTING_H
#define JAIL_LISTING_H

#include "keeper/conn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LISTED_MAX 10000  /* entries that the run made */
#define NUMBERED_MAX 21000 /* files with a number: those entries, and every input */
#define LISTING_TRUNCATED 1u
#define LISTING_TIMED_OUT 2u
#define LISTING_UNCOMPARED 4u /* a writable input that may be unchanged is listed as changed */

enum file_state { FILE_NEW, FILE_CHANGED, FILE_UNCHANGED };
enum omission { OMITTED_TYPE = 1, OMITTED_NAME };

struct entry {
	size_t path; /* position in the text of the listing */
	uint16_t path_size;
	uint8_t tag;	/* of the frame: 'f', 'd', 'k', 'm', 'o'; in a whole listing 'v' and 'y' */
	uint8_t detail; /* file_state or omission; for 'v': whether the directory is empty */
	uint32_t input;
	uint64_t size; /* for 'y': the size of the target, which follows the path in the text */
	mode_t mode; /* permission bits of 'f' and 'v' */
	ino_t inode;
};

struct listing {
	struct entry *entries;
	char *text;
	size_t count, capacity, text_size, text_capacity;
	size_t made; /* entries that are not inputs */
	uint64_t unlisted;
	uint32_t flags;
	uint32_t file_count;
	uint32_t files[NUMBERED_MAX]; /* file number -> entry; unset beyond file_count */
};

/* Copies the path; an entry that does not fit is counted and flagged. */
void listing_add(struct listing *listing, struct entry entry, const char *path, size_t path_size);
/* The same for a symlink. Its size is that of its target. */
void listing_add_link(struct listing *listing, struct entry entry, const char *path, size_t path_size,
		      const void *target);
/* Sorts; keeps all inputs and the first LISTED_MAX other entries. */
void listing_finish(struct listing *listing);
void listing_send(const struct listing *listing, struct conn *conn);
const char *listing_path(const struct listing *listing, const struct entry *entry);
/* For a 'y' only. */
const char *listing_target(const struct listing *listing, const struct entry *entry);

#endif
