#include "lib/channel.h"

#include <errno.h>
#include <sys/socket.h>

ssize_t channel_read(int control, struct message *message)
{
	ssize_t n;

	do
		n = recv(control, message, sizeof(*message), MSG_DONTWAIT);
	while (n < 0 && (errno == ECONNRESET || errno == EINTR));
	return n;
}
