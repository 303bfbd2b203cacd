/*
 * The order in which the kernel's out-of-memory killer chooses processes: programs first, jaild and its keepers last. Only
 * the end of a keeper frees the file systems of its jail, so keepers must survive to do it.
 */
#ifndef JAIL_OOM_H
#define JAIL_OOM_H

/* For the calling process and its children. Needs /proc to be mounted. -1 on failure. */
int oom_kill_first(void);

/* For the master. Logs a warning when it lacks CAP_SYS_RESOURCE. */
void oom_kill_last(void);

#endif
