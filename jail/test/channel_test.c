/* What a process said before it ended is heard, whatever it left unread. */
#include "lib/channel.h"
#include "lib/step.h"
#include "test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static void say(int control, enum message_kind kind)
{
	const struct message message = {.kind = kind, .step = STEP_JOB, .error = EPERM};

	CHECK(send(control, &message, sizeof(message), MSG_NOSIGNAL) == (ssize_t)sizeof(message));
}

static void expect_message(int control, enum message_kind kind)
{
	struct message message;

	CHECK(channel_read(control, &message) == (ssize_t)sizeof(message));
	CHECK(message.kind == kind && message.step == STEP_JOB && message.error == EPERM);
}

void test_channel(void)
{
	for (int unread = 0; unread < 3; unread++) {
		struct message message;
		int end[2];

		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end) == 0);
		CHECK(channel_read(end[0], &message) < 0 && errno == EAGAIN);
		for (int i = 0; i < unread; i++)
			say(end[0], MESSAGE_GO);
		say(end[1], MESSAGE_READY);
		say(end[1], MESSAGE_FAILED);
		close(end[1]);
		expect_message(end[0], MESSAGE_READY);
		expect_message(end[0], MESSAGE_FAILED);
		CHECK(channel_read(end[0], &message) == 0);
		close(end[0]);
	}
}
