/*
 * The command line as other processes see it in /proc. jaild's own names folders
 * of the host and ids; inside a jail it must not be seen.
 */
#ifndef JAIL_TITLE_H
#define JAIL_TITLE_H

/* Called once, at the start of main. */
void title_remember(int argc, char **argv);

/* Overwrites the arguments of this process; nothing may read them afterwards. */
void title_set(const char *title);

#endif
