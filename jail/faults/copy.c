/*
 * Fault injection in the copies of zygotes, part of the object that jaild-faults loads into them:
 * the first call of the first copy fails, the second of the second, and so on.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WORDS long a, long b, long c, long d, long e, long f

#define DECLARE(name)                     \
	long __real_##name(WORDS);        \
	long __wrap_##name(WORDS);
#define NEGATIVE(name) DECLARE(name)
#define NULL_POINTER(name) DECLARE(name)
#define NEVER(name)
#include "calls.def"
#undef NEGATIVE
#undef NULL_POINTER

static unsigned copies; /* the process that forks a copy shares the zygote's memory */
static unsigned calls;
static bool is_copy;

static bool fails(void)
{
	if (!is_copy || ++calls != copies)
		return false;
	errno = EPERM;
	return true;
}

static long after(const char *name, long result)
{
	if (strcmp(name, "fork") == 0) {
		is_copy = (int)result == 0;
		calls = 0;
	}
	return result;
}

static void before(const char *name)
{
	copies += strcmp(name, "fork") == 0;
}

#define WRAP(name, failure)                                   \
	long __wrap_##name(WORDS)                             \
	{                                                     \
		if (fails())                                  \
			return failure;                       \
		before(#name);                                \
		return after(#name, __real_##name(a, b, c, d, e, f)); \
	}
#define NEGATIVE(name) WRAP(name, -1)
#define NULL_POINTER(name) WRAP(name, 0)
#include "calls.def"
