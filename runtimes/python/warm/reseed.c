#include "reseed.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static bool reseed_random(void *memory, size_t size)
{
	char *at = memory;

	while (size > 0) {
		ssize_t n = getrandom(at, size, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static bool reset_clock(void *at, size_t size)
{
	struct timespec now;
	double seconds;

	if (size != sizeof(seconds) || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return false;
	seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
	memcpy(at, &seconds, sizeof(seconds));
	return true;
}

bool reseed_places(const char *places, size_t size)
{
	struct place place;

	if (size % sizeof(place) != 0)
		return false;
	for (const char *end = places + size; places < end; places += sizeof(place)) {
		void *at;

		memcpy(&place, places, sizeof(place));
		at = (void *)(uintptr_t)place.address;
		if (!(place.kind == RESEED_RANDOM ? reseed_random : reset_clock)(at, place.size))
			return false;
	}
	return true;
}
