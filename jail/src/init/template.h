/*
 * The template: a mount namespace with separate read-only mounts of the image, a layer over it (the sources of the files
 * in /proc), the devices of each slot, the tool directory, and a /proc without processes. Nothing else of the host is in
 * it. It belongs to jaild's user namespace (userns.h), so every keeper can enter it. Every jail starts as a copy of it.
 *
 * Each jail's root is an overlay of its own over layer and image. Jails share the bytes of the image and its page cache.
 * Each has its own inodes, and its slot's devices: a lock on a file or directory of the root affects no other jail, and
 * no path of the host is visible.
 */
#ifndef JAIL_TEMPLATE_H
#define JAIL_TEMPLATE_H

#include "master/options.h"

/* Descriptors of the namespace, and of the user namespace that it belongs to (userns.h); fatal on failure. */
void template_make(const struct options *options, int *template, int *userns);

/*
 * In a copy of the template: makes the root of a jail, with /dev, the slot's tool directory, and /proc of the caller's pid
 * namespace. With NO_SLOT it omits the last two. -1 and errno on failure.
 */
#define NO_SLOT SLOTS_MAX
int template_enter(const struct options *options, unsigned slot);

/* A new, detached overlay of directories, "upper:lower"; read-only. -1 and errno on failure. */
int overlay_make(const char *layers);

/* A new, detached /proc of the caller's pid namespace. -1 and errno on failure. */
int proc_make(void);

/* A new, detached tmpfs; options are "key=value" words. -1 and errno on failure. */
int tmpfs_make(const char *const *options, unsigned attributes);

#endif
