/*
 * Memory that no two copies may share, made anew in place: what lies there is random, or the time, and no code of the script
 * has to run for it.
 */
#ifndef ZYGOTE_RENEW_H
#define ZYGOTE_RENEW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { RENEW_RANDOM, RENEW_CLOCK }; /* any bytes; seconds since 1970 as a double */

/* As the script packs it. */
struct place {
	uint64_t kind, address, size;
};

/* False: `places` is malformed, or there is no randomness. */
bool renew_places(const char *places, size_t size);

#endif
