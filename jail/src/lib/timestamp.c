#include "lib/timestamp.h"

#include <stdbool.h>
#include <stdio.h>

#define DAY_SECONDS 86400
#define LAST_YEAR 9999

static bool is_leap(unsigned year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned days_of_month(unsigned year, unsigned month)
{
	static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return days[month] + (month == 1 && is_leap(year));
}

void timestamp_text(char text[TIMESTAMP_SIZE], int64_t seconds, long nanoseconds)
{
	uint64_t total = seconds > 0 ? (uint64_t)seconds : 0;
	uint64_t days = total / DAY_SECONDS;
	unsigned rest = (unsigned)(total % DAY_SECONDS), year = 1970, month = 0;

	while (year < LAST_YEAR && days >= 365u + is_leap(year))
		days -= 365u + is_leap(year++);
	while (month < 11 && days >= days_of_month(year, month))
		days -= days_of_month(year, month++);
	snprintf(text, TIMESTAMP_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", year, month + 1, (unsigned)(days % 31) + 1,
		 rest / 3600, rest / 60 % 60, rest % 60, (unsigned)(nanoseconds / 1000000) % 1000);
}
