/* Times of the log against the C library's own calendar. */
#include "lib/timestamp.h"

#include <string.h>
#include <time.h>

#include "test.h"

static void check_like_library(int64_t seconds)
{
	char text[TIMESTAMP_SIZE], expected[TIMESTAMP_SIZE];
	time_t time = (time_t)seconds;
	struct tm parts;

	gmtime_r(&time, &parts);
	strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S.007Z", &parts);
	timestamp_text(text, seconds, 7999999);
	CHECK(strcmp(text, expected) == 0);
}

void test_timestamp(void)
{
	static const int64_t edges[] = {0, 951782399, 951782400, 951868799, 951868800, 4107542399, 4107542400, 253402300799};
	char text[TIMESTAMP_SIZE];

	for (unsigned i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		check_like_library(edges[i]);
	for (unsigned i = 0; i < 10000; i++)
		check_like_library((int64_t)test_random() * 50);
	timestamp_text(text, 1795431481, 739000000);
	CHECK(strcmp(text, "2026-11-23T10:58:01.739Z") == 0);
	timestamp_text(text, -1, 0);
	CHECK(strcmp(text, "1970-01-01T00:00:00.000Z") == 0);
}
