/*
 * What a program sees in /proc: its own processes, and the few files that programs ask for, made by us. They are mounted
 * on the kernel's entries of the same names; then the kernel is told to show processes only. An entry that we do not
 * make does not exist for a program, whether the kernel has it now or a module adds it later.
 */
#ifndef JAIL_PROC_H
#define JAIL_PROC_H

#include <stdint.h>

#define FACT_FILES 2
/* Where a jail finds the static files, and those of its run; its workspace and its /tmp hide them. */
#define COVERS_PATH "/mnt/data"
#define FACTS_PATH "/tmp"

/* Makes the static files in an open directory of the template. */
int proc_make_covers(int directory);

/* Makes the files whose text depends on the run; fds[] stay open for proc_write_facts. */
int proc_make_facts(int directory, int fds[FACT_FILES]);
int proc_write_facts(const int fds[FACT_FILES], uint64_t memory_bytes);

/* In the jail: mounts the static files from COVERS_PATH and those of the run from FACTS_PATH on /proc, and hides the rest. */
int proc_cover(void);

/* The kernel's own entries of /proc that nothing is mounted on do not exist from here on. -1 and errno on failure. */
int proc_hide(void);

#endif
