/* Which descriptors a process holds: nothing comes along that its code does not name. */
#ifndef JAIL_DESCRIPTORS_H
#define JAIL_DESCRIPTORS_H

#include <stddef.h>

/* At the start of jaild: the three standard streams are open, and nothing else that its starter left. */
int descriptors_begin(void);

/* Closes all but these, in any order; -1 stands for none. The list is sorted. */
int descriptors_keep(int *kept, size_t count);

#endif
