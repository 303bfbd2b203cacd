/* The list of locks, as the kernel writes it. */
#include "files/locks.h"
#include "test.h"

#include <string.h>

static uint64_t counted(const char *text, size_t part)
{
	struct lock_count count = {0};
	size_t size = strlen(text);

	for (size_t at = 0; at < size; at += part)
		locks_read(&count, text + at, size - at < part ? size - at : part);
	return count.own;
}

void test_locks(void)
{
	static const char list[] =
		"1: POSIX  ADVISORY  WRITE 7 00:1b:15 0 0\n"
		"1: -> POSIX  ADVISORY  WRITE 8 00:1b:15 0 0\n"
		"1:  -> POSIX  ADVISORY  WRITE 9 00:1b:15 0 0\n"
		"2: OFDLCK ADVISORY  READ  -1 00:1b:16 128 128\n"
		"3: FLOCK  ADVISORY  WRITE 7 00:1b:17 0 EOF\n"
		"4: POSIX  ADVISORY  READ  -12 00:1b:18 5 9223372036854775806\n"
		"5: POSIX  ADVISORY  READ  7 <none>:0 5 EOF\n";

	for (size_t part = 1; part <= sizeof(list); part++)
		CHECK(counted(list, part) == 5);
	CHECK(counted("", 1) == 0);
}
