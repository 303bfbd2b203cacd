#include "files/hash.h"

#include <string.h>
#include <sys/random.h>

#define PRIME ((UINT64_C(1) << 61) - 1)
#define BLOCK 7

static uint64_t multiply(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);

	return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t step(uint64_t sum, uint64_t point, uint64_t block)
{
	sum = multiply(sum, point) + block;
	return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t load(const uint8_t *data, size_t size)
{
	uint64_t block = 0;

	for (size_t i = 0; i < size; i++)
		block |= (uint64_t)data[i] << (8 * i);
	return block;
}

int hash_key_make(struct hash_key *key)
{
	if (getrandom(key->point, sizeof(key->point), 0) != (ssize_t)sizeof(key->point))
		return -1;
	for (int i = 0; i < 2; i++)
		key->point[i] = key->point[i] % (PRIME - 2) + 2;
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
		hash->sum[i] = step(hash->sum[i], hash->key->point[i], block);
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
	/* Eight bytes are loaded and seven used, as long as eight are there. */
	for (; size >= BLOCK + 1; at += BLOCK, size -= BLOCK) {
		uint64_t word;

		memcpy(&word, at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		word = __builtin_bswap64(word);
#endif
		absorb(hash, word & ((UINT64_C(1) << 56) - 1));
	}
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
