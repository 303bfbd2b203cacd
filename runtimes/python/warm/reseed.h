/*
 * Memory that no two copies may share, made anew in place: what lies there is random, or the time, and no code of the script
 * has to run for it.
 */
#ifndef PYTHON_RESEED_H
#define PYTHON_RESEED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { RESEED_RANDOM, RESEED_CLOCK }; /* any bytes; seconds since 1970 as a double */

/* As the script packs it. */
struct place {
	uint64_t kind, address, size;
};

/* False: `places` is malformed, or there is no randomness. */
bool reseed_places(const char *places, size_t size);

#endif
