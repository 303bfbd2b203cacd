/* The shared object that pre-started interpreters load (jail/interpreter). It is part of jaild, so that both always match. */
#ifndef JAIL_PRESTARTED_H
#define JAIL_PRESTARTED_H

/* In the master, once: a sealed file in memory. Fatal on failure. */
int prestarted_object_make(void);

#endif
