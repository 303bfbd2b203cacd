/* The socket that clients connect to. */
#ifndef JAIL_LISTENER_H
#define JAIL_LISTENER_H

#include "master/options.h"

/* Binds and listens; replaces a dead socket, never a live one; fatal on failure. */
int listener_open(const struct options *options);
/* Removes the socket if it is still the one that was made. */
void listener_remove(const struct options *options);

#endif
