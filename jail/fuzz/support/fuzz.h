/*
 * What the fuzz targets share. A target gets any bytes, gives them to the code that meets such
 * bytes in jaild, and ends the process when a promise of that code is broken; the sanitizers
 * end it for the rest. It leaves nothing behind for the next input.
 */
#ifndef JAIL_FUZZ_H
#define JAIL_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PROMISE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes of an input, taken one by one; zeros when there are no more. */
struct bytes {
	const uint8_t *at, *end;
};

uint8_t take(struct bytes *bytes);

/* An empty directory with an empty `workspace` in it, the same for every input. */
int playground_open(void);
/* Removes everything that is in the workspace; nothing else may have come to be beside it. */
void playground_clear(int playground);

/* A connected pair; what is sent fits, and neither end waits. */
void pair_open(int ends[2]);

#endif
