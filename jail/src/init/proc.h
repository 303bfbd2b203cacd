/*
 * The /proc of a program: its own processes, and a few files that programs need. jaild writes these files and mounts them
 * on the kernel's entries of the same names, then remounts /proc with subset=pid. No other entry exists for a program,
 * whether the kernel has it now or a module adds it later.
 */
#ifndef JAIL_PROC_H
#define JAIL_PROC_H

#include <stdint.h>

#define FACT_FILES 2
/* Where a jail finds the static files and the files of its run. The workspace and /tmp are mounted over them later. */
#define COVERS_PATH "/mnt/data"
#define FACTS_PATH "/tmp"

/* Makes the static files in an open directory of the template. */
int proc_make_covers(int directory);

/* Makes the files whose text depends on the run; fds[] stay open for proc_write_facts. */
int proc_make_facts(int directory, int fds[FACT_FILES]);
int proc_write_facts(const int fds[FACT_FILES], uint64_t memory_bytes);

/* In the jail: mounts the static files from COVERS_PATH and the run's from FACTS_PATH on /proc, and hides the rest. */
int proc_cover(void);

/* Hides all entries of /proc that nothing is mounted on, except processes. -1 and errno on failure. */
int proc_hide(void);

#endif
