/*
 * The template: a mount namespace that holds the image as its read-only root, a
 * read-only /dev and the sources of the /proc covers, and nothing of the host.
 * Every keeper enters it, every jail starts as a copy of it.
 */
#ifndef JAIL_TEMPLATE_H
#define JAIL_TEMPLATE_H

#include "options.h"

/* The descriptor of the namespace; fatal on failure. */
int template_make(const struct options *options);

/* A new, detached tmpfs; options are "key=value" words. -1 and errno on failure. */
int tmpfs_make(const char *const *options, unsigned attributes);

#endif
