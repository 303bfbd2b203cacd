/*
 * Stages the inputs of a run in its workspace and records them for the listing. Paths have passed path_is_valid; every
 * step is relative to a descriptor and follows no link. A pre-started process may already run and change the workspace:
 * it never owns a read-only file, not even for a moment.
 */
#ifndef JAIL_STAGE_H
#define JAIL_STAGE_H

#include "files/hash.h"
#include "keeper/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define INPUTS_MAX 11000

struct input {
	uint32_t index; /* the client's own number */
	bool directory, read_only;
	char *path;
	uint64_t size;
	struct hash_value hash;
};

struct inputs {
	struct hash_key key;
	size_t count, links;
	struct input item[INPUTS_MAX];
};

/* The destination of staged files, and their owner. */
struct stage {
	int workspace;
	uid_t uid;
	gid_t gid;
};

/*
 * All return -1 and errno; ENOSPC: the workspace is full; EEXIST: something else has this path. stage_file returns the
 * file, open for writing. A directory may exist already; it gets the mode and the owner all the same.
 */
int stage_directory(const struct stage *stage, const struct directory_header *directory);
int stage_link(const struct stage *stage, const struct link_header *link);
int stage_file(const struct stage *stage, const struct file_header *file);

/* Adds to the list; NULL with E2BIG when it is full, with another errno when memory allocation fails. */
struct input *inputs_add(struct inputs *inputs, uint32_t index, bool directory, const char *path,
			 size_t path_size, uint64_t size);
/* A symlink is not an input, but counts towards INPUTS_MAX. False with E2BIG. */
bool inputs_count_link(struct inputs *inputs);
/* Sorts by path; false when two inputs have one path. */
bool inputs_sort(struct inputs *inputs);
/* After sorting: the input of exactly this path, or NULL. */
const struct input *inputs_find(const struct inputs *inputs, const char *path);
/* After sorting: whether the directory is an input or contains one. */
bool inputs_below(const struct inputs *inputs, const char *directory);

#endif
