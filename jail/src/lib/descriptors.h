/* Closes descriptors, so that a process has only those that its code names. */
#ifndef JAIL_DESCRIPTORS_H
#define JAIL_DESCRIPTORS_H

#include <stddef.h>

/* At the start of jaild: opens missing standard streams and closes all other inherited descriptors. */
int descriptors_begin(void);

/* Closes all but these; ignores -1. Sorts the list. */
int descriptors_keep(int *kept, size_t count);

#endif
