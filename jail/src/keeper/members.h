/*
 * Kills the processes of a jail from outside, one by one. Each is addressed by its open directory in the jail's own /proc,
 * which refers to one process for good: a reused pid cannot redirect the signal, and no process outside the jail can be
 * addressed.
 */
#ifndef JAIL_MEMBERS_H
#define JAIL_MEMBERS_H

/* `proc`: the /proc of the jail, opened for reading. Processes that fork meanwhile may survive: call again. */
void members_kill(int proc);

#endif
