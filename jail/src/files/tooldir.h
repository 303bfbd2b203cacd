/*
 * The tool directory: <base>/<slot>/ on the host, where the owner of jaild's socket
 * may put the tool socket of a run; every jail shows its own one read-only. The
 * base belongs to root, so no slot can be exchanged; what is inside a slot belongs
 * to a less trusted user and no link of it is followed.
 */
#ifndef JAIL_TOOLDIR_H
#define JAIL_TOOLDIR_H

#include "master/options.h"

#include <stdbool.h>

/* Master. Makes the base and all slots; fatal on failure. Nothing without --tool-directory. */
void tooldir_make(const struct options *options);
/* Empties a slot; false when something stays or is left for the next call. */
bool tooldir_clean(unsigned slot);
void tooldir_remove(void);

/* For the template: a detached, read-only mount of the base; -1 and errno. */
int tooldir_mount(const struct options *options);
/* Lets go of what keepers and zygotes must not inherit. */
void tooldir_forget(void);

#endif
