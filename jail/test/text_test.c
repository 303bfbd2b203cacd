/* Kernel statistics and numbers of the command line. */
#include "lib/util.h"
#include "test.h"

void test_text(void)
{
	static const char stat[] = "cache 12\nshmem 34\ntotal_shmem 56\noom_kill_disable 0\noom_kill 2\n";
	uint64_t value;

	CHECK(keyed_number(stat, "shmem") == 34 && keyed_number(stat, "oom_kill") == 2);
	CHECK(keyed_number(stat, "file") == 0 && keyed_number("", "file") == 0);
	CHECK(parse_u64("0", 10, &value) && value == 0);
	CHECK(parse_u64("18446744073709551615", UINT64_MAX, &value) && value == UINT64_MAX);
	CHECK(!parse_u64("18446744073709551616", UINT64_MAX, &value) && !parse_u64("11", 10, &value));
	CHECK(!parse_u64("", 10, &value) && !parse_u64("-1", 10, &value) && !parse_u64("1k", 10, &value) &&
	      !parse_u64(" 1", 10, &value) && !parse_u64("0x1", 100, &value));
}
