/*
 * Who goes first when the machine is short of memory: programs before everything else, jaild and its keepers last. What
 * jails hold in file systems goes with their keepers only, so these must live to free it.
 */
#ifndef JAIL_SHORTAGE_H
#define JAIL_SHORTAGE_H

/* The calling process, and what it forks, by the /proc that is mounted at /proc. -1 on failure. */
int shortage_go_first(void);

/* The master. Says so when it lacks the capability for it (CAP_SYS_RESOURCE). */
void shortage_go_last(void);

#endif
