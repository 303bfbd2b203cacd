/*
 * The tool directory: <base>/<slot>/ on the host, where the owner of jaild's socket may put the tool socket of a run.
 * Every jail has its own one mounted read-only. The base belongs to root, so no slot can be replaced; a slot's content
 * belongs to a less trusted user, and no link in it is followed.
 */
#ifndef JAIL_TOOLDIR_H
#define JAIL_TOOLDIR_H

#include "master/options.h"

#include <stdbool.h>

/* Master. Makes the base and all slots; fatal on failure. Nothing without --tool-directory. */
void tooldir_make(const struct options *options);
/* Empties a slot; false when entries remain, for the next call or for good. */
bool tooldir_clean(unsigned slot);
void tooldir_remove(void);

/* For the template: a detached, read-only mount of the base; -1 and errno. */
int tooldir_mount(const struct options *options);
/* Closes the base, which keepers and zygotes must not keep open. */
void tooldir_forget(void);

#endif
