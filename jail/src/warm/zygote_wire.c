#include "warm/zygote_wire.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union space {
	char bytes[CMSG_SPACE(GIVEN * sizeof(int))];
	struct cmsghdr align;
};

int zygote_request_send(int socket, const struct zygote_request *request, const int given[GIVEN])
{
	union space control = {{0}};
	struct iovec part = {(void *)request, sizeof(*request)};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(GIVEN * sizeof(int));
	memcpy(CMSG_DATA(header), given, GIVEN * sizeof(int));
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(*request) ? 0 : -1;
}

/* The buffer has room for one list of the right length; the kernel closes any further descriptors. */
static size_t take_descriptors(struct msghdr *message, int given[GIVEN])
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	size_t size;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return 0;
	size = header->cmsg_len - CMSG_LEN(0);
	memcpy(given, CMSG_DATA(header), size);
	return size / sizeof(int);
}

bool zygote_request_receive(int socket, struct zygote_request *request, int given[GIVEN])
{
	union space control;
	struct iovec part = {request, sizeof(*request)};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	size_t count = n < 0 ? 0 : take_descriptors(&message, given);

	if (n == (ssize_t)sizeof(*request) && count == GIVEN && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return true;
	while (count > 0)
		close(given[--count]);
	return false;
}
