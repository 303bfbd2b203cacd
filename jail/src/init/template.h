/*
 * The template: a mount namespace that holds, side by side and read-only, the image,
 * one layer to lie over it (sources of what stands in /proc), devices for each slot, the
 * tool directory, and a /proc without processes; nothing else of the host. It belongs to
 * jaild's user namespace (userns.h), so every keeper can enter it, and every jail starts as a copy of it.
 *
 * A jail's root is an overlay of its own over image and layer. Jails share the bytes of the
 * image, and its pages in memory. Each has inodes of its own, the devices those of its slot:
 * locks on files and directories of the root reach nobody else, and no path of the host
 * shows.
 */
#ifndef JAIL_TEMPLATE_H
#define JAIL_TEMPLATE_H

#include "master/options.h"

/* Descriptors of the namespace, and of the user namespace that it belongs to (userns.h); fatal on failure. */
void template_make(const struct options *options, int *template, int *userns);

/*
 * In a copy of the template: makes the root of a jail, with /dev, the slot's tool directory, and /proc of the calling process's
 * namespace. With NO_SLOT it has neither of the last two. -1 and errno on failure.
 */
#define NO_SLOT SLOTS_MAX
int template_enter(const struct options *options, unsigned slot);

/* A new, detached overlay of directories, "upper:lower"; read-only. -1 and errno on failure. */
int overlay_make(const char *layers);

/* A new, detached /proc of the calling process's namespace. -1 and errno on failure. */
int proc_make(void);

/* A new, detached tmpfs; options are "key=value" words. -1 and errno on failure. */
int tmpfs_make(const char *const *options, unsigned attributes);

#endif
