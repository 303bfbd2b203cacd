#include "files/hash.h"

#include <string.h>
#include <sys/random.h>

#define PRIME ((UINT64_C(1) << 61) - 1)
#define BLOCK 7

typedef unsigned __int128 wide;

/* `value` is at most 2^122 - 1. */
static uint64_t reduce(wide value)
{
	uint64_t sum = (uint64_t)(value & PRIME) + (uint64_t)(value >> 61);

	return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	return reduce((wide)a * b);
}

static uint64_t step(uint64_t sum, uint64_t point, uint64_t block)
{
	sum = multiply(sum, point) + block;
	return sum >= PRIME ? sum - PRIME : sum;
}

/*
 * Four steps at once, so that the multiplications do not wait for each other. A power is below 2^61 and a block below 2^56,
 * so the sum of the products that do not depend on `sum` is below 2^119.
 */
static uint64_t step_four(uint64_t sum, const uint64_t power[HASH_STRIDE], const uint64_t block[HASH_STRIDE])
{
	wide rest = (wide)block[0] * power[2] + (wide)block[1] * power[1] + (wide)block[2] * power[0] + block[3];

	sum = multiply(sum, power[3]) + reduce(rest);
	return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t load(const uint8_t *data, size_t size)
{
	uint64_t block = 0;

	for (size_t i = 0; i < size; i++)
		block |= (uint64_t)data[i] << (8 * i);
	return block;
}

/* The same for seven bytes that at least one more byte follows. */
static uint64_t load_fast(const uint8_t *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word & ((UINT64_C(1) << 56) - 1);
}

int hash_key_make(struct hash_key *key)
{
	uint64_t point[2];

	if (getrandom(point, sizeof(point), 0) != (ssize_t)sizeof(point))
		return -1;
	for (int i = 0; i < 2; i++) {
		uint64_t *power = key->power[i];

		power[0] = point[i] % (PRIME - 2) + 2;
		for (int n = 1; n < HASH_STRIDE; n++)
			power[n] = multiply(power[n - 1], power[0]);
	}
	return 0;
}

void hash_begin(struct hash *hash, const struct hash_key *key)
{
	memset(hash, 0, sizeof(*hash));
	hash->key = key;
}

static void absorb(struct hash *hash, uint64_t block)
{
	for (int i = 0; i < 2; i++)
		hash->sum[i] = step(hash->sum[i], hash->key->power[i][0], block);
}

void hash_add(struct hash *hash, const void *data, size_t size)
{
	const uint8_t *at = data;

	hash->size += size;
	if (hash->held > 0) {
		while (size > 0 && hash->held < BLOCK) {
			hash->rest[hash->held++] = *at++;
			size--;
		}
		if (hash->held < BLOCK)
			return;
		absorb(hash, load(hash->rest, BLOCK));
		hash->held = 0;
	}
	for (; size >= HASH_STRIDE * BLOCK + 1; at += HASH_STRIDE * BLOCK, size -= HASH_STRIDE * BLOCK) {
		uint64_t block[HASH_STRIDE];

		for (int n = 0; n < HASH_STRIDE; n++)
			block[n] = load_fast(at + n * BLOCK);
		for (int i = 0; i < 2; i++)
			hash->sum[i] = step_four(hash->sum[i], hash->key->power[i], block);
	}
	for (; size >= BLOCK + 1; at += BLOCK, size -= BLOCK)
		absorb(hash, load_fast(at));
	if (size >= BLOCK) {
		absorb(hash, load(at, BLOCK));
		at += BLOCK;
		size -= BLOCK;
	}
	memcpy(hash->rest, at, size);
	hash->held = (unsigned)size;
}

struct hash_value hash_end(struct hash *hash)
{
	struct hash_value value;

	absorb(hash, load(hash->rest, hash->held));
	absorb(hash, hash->size);
	memcpy(value.word, hash->sum, sizeof(value.word));
	return value;
}
