#ifndef JAIL_CHANNEL_H
#define JAIL_CHANNEL_H

#include "keeper/jail.h"

#include <sys/types.h>

/*
 * Reads the next message without waiting. Returns its size, 0 at the end of the channel, or -1 with EAGAIN. No message is lost
 * when the peer closes with unread data: the kernel reports ECONNRESET once, then delivers the messages.
 */
ssize_t channel_read(int control, struct message *message);

#endif
