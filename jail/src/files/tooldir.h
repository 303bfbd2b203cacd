/*
 * The tool directory: <base>/<slot>/ on the host, where the owner of jaild's socket may put the tool socket of a run. Each
 * jail mounts the directory of its own slot read-only. The base belongs to root, so nobody else can replace the directory
 * of a slot. Its content belongs to a less trusted user, and no link in it is followed.
 */
#ifndef JAIL_TOOLDIR_H
#define JAIL_TOOLDIR_H

#include "master/options.h"

#include <stdbool.h>

/* Master. Makes the base and the directories of all slots; fatal on failure. Does nothing without --tool-directory. */
void tooldir_make(const struct options *options);
/* Empties the directory of a slot. False when entries remain; the next call may or may not be able to remove them. */
bool tooldir_clean(unsigned slot);
void tooldir_remove(void);

/* For the template: a detached, read-only mount of the base; -1 and errno. */
int tooldir_mount(const struct options *options);
/* Closes the base. Keepers and zygotes must not keep it open. */
void tooldir_forget(void);

#endif
