/* The verdicts of a run: memory arithmetic, wait statuses, output floods. */
#include "keeper/run.h"
#include "test.h"

#include <signal.h>

static bool over(uint64_t memory, uint64_t page_cache, uint64_t shared, uint64_t file_systems)
{
	const struct cgroup_usage usage = {.memory = memory, .page_cache = page_cache, .shared = shared};

	return memory_is_over(&usage, file_systems, 100);
}

void test_verdict(void)
{
	struct result result = {0};
	struct capture capture = {.cap = 10, .total = 640};

	CHECK(!over(100, 0, 0, 0) && over(101, 0, 0, 0));
	CHECK(!over(500, 400, 0, 0) && over(501, 400, 0, 0));	  /* clean pages do not count */
	CHECK(!over(500, 0, 400, 400) && over(501, 0, 400, 400)); /* nor what the file systems hold */
	CHECK(over(500, 0, 400, 100));				  /* memory files do */
	CHECK(!over(500, 0, 400, 4000));
	CHECK(over(501, 0, 400, 4000));
	CHECK(!over(0, 400, 400, 400)); /* counters that do not fit together underflow nothing */

	result_set_status(&result, 3 << 8);
	CHECK(result.cause == CAUSE_EXITED && result.exit_code == 3 && result.signal == 0);
	result = (struct result){0};
	result_set_status(&result, 137 << 8);
	CHECK(result.cause == CAUSE_EXITED && result.exit_code == 137);
	result = (struct result){0};
	result_set_status(&result, SIGSEGV | 0x80);
	CHECK(result.cause == CAUSE_SIGNALED && result.signal == SIGSEGV && result.exit_code == 0);

	CHECK(!capture_is_over(&capture, 64));
	capture.total++;
	CHECK(capture_is_over(&capture, 64) && !capture_is_over(&capture, 0));
}
