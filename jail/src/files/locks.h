/*
 * The locks on files that the processes of a jail hold. They are kernel memory that no control
 * group counts, so the keeper counts them, in the /proc/locks of the jail's process namespace.
 *
 * The system call policy makes the count complete. Every lock belongs to a file table or to an open file, and is listed
 * under the process that took it while that process lives. File tables cannot outlive their process (clone). Leases and
 * locks without an owner (F_OFD_SETLK, listed in every namespace) are denied. Only flock locks whose process has ended
 * are missing: at most one per open file, which is charged to the run.
 */
#ifndef JAIL_LOCKS_H
#define JAIL_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Low, because every lock and every close of an open file walks all locks on that file: releasing many on one file keeps
 * the kernel busy for long.
 */
#define LOCKS_MAX 2000
#define LOCKS_LOOK_US 150000 /* CPU time of a run between two counts, in which its locks can grow by 12 MB */

/* The state of reading a list of locks. */
struct lock_count {
	uint64_t own;
	bool foreign; /* the current line is from another namespace */
	char last;
};

/* Reads a further part of the list. In lines of other namespaces the process number is negative. */
void locks_read(struct lock_count *count, const char *text, size_t size);

/* `list`: an open /proc/locks. 1 when there are more locks than LOCKS_MAX, 0 when not, -1 with errno. */
int locks_are_too_many(int list);

#endif
