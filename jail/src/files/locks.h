/*
 * The locks on files that the processes of a jail hold. They are kernel memory that no control
 * group counts, so the keeper counts them, in the /proc/locks of the jail's process namespace.
 *
 * Complete because of the system call policy: every lock belongs to a file table or to an open
 * file, and is listed under the process that took it as long as that process lives. File tables
 * cannot outlive their process (clone), locks that are nobody's (F_OFD_SETLK, listed without an
 * owner in every namespace) and leases cannot be taken. What is left out are locks of whole files
 * (flock) whose taker has ended: one for an open file at most, and that is charged to the run.
 */
#ifndef JAIL_LOCKS_H
#define JAIL_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Few, because every lock and every close of an open file passes by all locks on that file: a kernel that takes
 * leave of many on one file is busy for long.
 */
#define LOCKS_MAX 2000
#define LOCKS_LOOK_US 150000 /* processor time of a run between two looks, in which it can take 12 MB more */

/* What was read of a list of locks so far. */
struct lock_count {
	uint64_t own;
	bool foreign; /* of the line that has begun */
	char last;
};

/* A further part of the list; lines of other namespaces have a process number below zero. */
void locks_read(struct lock_count *count, const char *text, size_t size);

/* `list`: an open /proc/locks. 1 when there are more locks than LOCKS_MAX, 0 when not, -1 with errno. */
int locks_are_too_many(int list);

#endif
