/* A request for a copy arrives whole or not at all, and what is malformed leaves no descriptor behind. */
#include "warm/zygote_wire.h"

#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 20 /* more descriptors than a request has */

static int ends[2];

static unsigned count_open(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 200; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void send_raw(size_t size, size_t descriptors)
{
	char bytes[64] = {0};
	union {
		char space[CMSG_SPACE(MOST * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec part = {bytes, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (descriptors > 0) {
		message.msg_control = control.space;
		message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(descriptors * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		for (size_t i = 0; i < descriptors; i++)
			memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)) + i * sizeof(int), &ends[0], sizeof(int));
	}
	CHECK(sendmsg(ends[0], &message, MSG_NOSIGNAL) == (ssize_t)size);
}

static bool receive(int given[GIVEN])
{
	struct zygote_request request;

	return zygote_request_receive(ends[1], &request, given);
}

static void closes_what_is_malformed(void)
{
	const size_t whole = sizeof(struct zygote_request);
	unsigned before = count_open();
	int given[GIVEN];

	for (size_t descriptors = 0; descriptors <= MOST; descriptors++) {
		const size_t sizes[] = {1, whole - 1, whole, whole + 1};

		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			bool right = descriptors == GIVEN && sizes[i] == whole;

			send_raw(sizes[i], descriptors);
			CHECK(receive(given) == right);
			for (size_t fd = 0; right && fd < GIVEN; fd++)
				CHECK(close(given[fd]) == 0);
			CHECK(count_open() == before);
		}
	}
	CHECK(!receive(given));
}

static void brings_each_in_its_place(void)
{
	const struct zygote_request sent = {.slot = 7};
	struct zygote_request request;
	int given[GIVEN], received[GIVEN];

	for (int i = 0; i < GIVEN; i++)
		CHECK((given[i] = open("/dev/null", i % 2 ? O_RDONLY : O_WRONLY)) >= 0);
	CHECK(zygote_request_send(ends[0], &sent, given) == 0);
	CHECK(zygote_request_receive(ends[1], &request, received) && request.slot == 7);
	for (int i = 0; i < GIVEN; i++) {
		CHECK((fcntl(received[i], F_GETFL) & O_ACCMODE) == (i % 2 ? O_RDONLY : O_WRONLY));
		CHECK(fcntl(received[i], F_GETFD) == FD_CLOEXEC);
		CHECK(close(given[i]) == 0 && close(received[i]) == 0);
	}
}

void test_zygote_wire(void)
{
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	closes_what_is_malformed();
	brings_each_in_its_place();
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}
