/*
 * What a program sees in /proc beside its own processes. Everything that is not
 * on the list of namespaced or harmless entries is covered by an empty file or
 * directory, or by a small synthetic file that states the run's own limits. The
 * list of what exists comes from the running kernel, so an entry that nobody
 * has heard of is covered too.
 */
#ifndef JAIL_PROC_H
#define JAIL_PROC_H

#include <stdint.h>

#define FACT_FILES 2
/* Where the template keeps the sources of the static covers, and a jail those of its own; its workspace and its /tmp hide them. */
#define COVERS_PATH "/mnt/data"
#define FACTS_PATH "/tmp"

/* Reads the names in /proc once; the master calls it before any keeper exists. -1 on failure. */
int proc_scan(void);

/* Makes the sources of the static covers in an open directory of the template. */
int proc_make_covers(int directory);

/* Makes the files whose text depends on the run; fds[] stay open for proc_write_facts. */
int proc_make_facts(int directory, int fds[FACT_FILES]);
int proc_write_facts(const int fds[FACT_FILES], uint64_t memory_bytes);

/* In the jail: binds the covers over /proc, the static ones from COVERS_PATH and the files of the run from FACTS_PATH. */
int proc_cover(void);

#endif
