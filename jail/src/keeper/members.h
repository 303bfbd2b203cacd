/*
 * Kills the processes of a jail from outside, one by one. Each is named by its directory in the jail's own /proc, which
 * stands for one process for good: no number that is used again can lead to another process, and none outside of the
 * jail can be named at all.
 */
#ifndef JAIL_MEMBERS_H
#define JAIL_MEMBERS_H

/* `proc`: the /proc of the jail, opened for reading. What is born meanwhile may stay: call again. */
void members_kill(int proc);

#endif
