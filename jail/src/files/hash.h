/*
 * Keyed hash of file contents: polynomials over the field of 2^61 - 1,
 * evaluated at two secret random points. For a key that the writer of the data
 * cannot know, two different contents of n bytes collide with a probability
 * below (n / 7 / 2^61)^2. No use beyond that: the result never leaves jaild.
 */
#ifndef JAIL_HASH_H
#define JAIL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_STRIDE 4

struct hash_key {
	uint64_t power[2][HASH_STRIDE]; /* of the points: x, x^2, ... */
};

struct hash_value {
	uint64_t word[2];
};

struct hash {
	const struct hash_key *key;
	uint64_t sum[2];
	uint64_t size;
	uint8_t rest[7];
	unsigned held;
};

int hash_key_make(struct hash_key *key);
void hash_begin(struct hash *hash, const struct hash_key *key);
void hash_add(struct hash *hash, const void *data, size_t size);
struct hash_value hash_end(struct hash *hash);

#endif
