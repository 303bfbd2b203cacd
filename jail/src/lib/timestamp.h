/* Times of the log. gmtime_r() cannot be used: its first call reads time zone files, which seccomp filters forbid. */
#ifndef JAIL_TIMESTAMP_H
#define JAIL_TIMESTAMP_H

#include <stdint.h>

#define TIMESTAMP_SIZE 32

/* ISO 8601 in UTC with milliseconds, as 2026-01-31T10:00:00.000Z. Before 1970 it is the first moment of that year. */
void timestamp_text(char text[TIMESTAMP_SIZE], int64_t seconds, long nanoseconds);

#endif
