#ifndef JAIL_CHANNEL_H
#define JAIL_CHANNEL_H

#include "keeper/jail.h"

#include <sys/types.h>

/*
 * The next message of the other end, without waiting: its size, 0 after the last one of an end that is closed, or -1 with EAGAIN.
 * An end that was closed with something unread loses no message: the kernel reports that first, and once (ECONNRESET).
 */
ssize_t channel_read(int control, struct message *message);

#endif
