/*
 * The command line in /proc. jaild's own contains paths and ids of the host, which must not be visible in a jail.
 */
#ifndef JAIL_TITLE_H
#define JAIL_TITLE_H

/* Called once, at the start of main. */
void title_remember(int argc, char **argv);

/* Overwrites the arguments of this process; nothing may read them afterwards. */
void title_set(const char *title);

#endif
