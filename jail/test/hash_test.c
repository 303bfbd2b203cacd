/* The content hash: independent of how data is cut, sensitive to every bit, length and key. */
#include "files/hash.h"
#include "test.h"

#include <string.h>

static struct hash_value hash_in_pieces(const struct hash_key *key, const uint8_t *data, size_t size, size_t piece)
{
	struct hash hash;

	hash_begin(&hash, key);
	for (size_t at = 0; at < size; at += piece)
		hash_add(&hash, data + at, size - at < piece ? size - at : piece);
	return hash_end(&hash);
}

/* Horner's rule with nothing clever in it. */
static uint64_t polynomial(const uint8_t *data, size_t size, uint64_t point)
{
	const uint64_t prime = (UINT64_C(1) << 61) - 1;
	uint64_t sum = 0;

	for (size_t at = 0; at <= size; at += 7) {
		uint64_t block = 0;

		for (size_t i = 0; i < 7 && at + i < size; i++)
			block |= (uint64_t)data[at + i] << (8 * i);
		sum = (uint64_t)(((unsigned __int128)sum * point + block) % prime);
	}
	return (uint64_t)(((unsigned __int128)sum * point + size) % prime);
}

static int same(struct hash_value a, struct hash_value b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

void test_hash(void)
{
	struct hash_key key, other;
	uint8_t data[300], copy[300];

	CHECK(hash_key_make(&key) == 0 && hash_key_make(&other) == 0);
	CHECK(memcmp(&key, &other, sizeof(key)) != 0);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)test_random();
	for (size_t size = 0; size <= sizeof(data); size++) {
		struct hash_value whole = hash_in_pieces(&key, data, size, sizeof(data));

		for (size_t piece = 1; piece < 20; piece++)
			CHECK(same(whole, hash_in_pieces(&key, data, size, piece)));
		if (size == 0)
			continue;
		CHECK(!same(whole, hash_in_pieces(&other, data, size, sizeof(data))));
		CHECK(!same(whole, hash_in_pieces(&key, data, size - 1, sizeof(data))));
		memcpy(copy, data, size);
		copy[test_random() % size] ^= (uint8_t)(1u << test_random() % 8);
		CHECK(!same(whole, hash_in_pieces(&key, copy, size, sizeof(data))));
	}
	/* The value is what the definition gives: blocks of seven bytes, then the remaining bytes, then the size. */
	for (size_t size = 0; size <= sizeof(data); size++) {
		struct hash_value value = hash_in_pieces(&key, data, size, sizeof(data));

		for (int i = 0; i < 2; i++)
			CHECK(value.word[i] == polynomial(data, size, key.power[i][0]));
	}
	/* zeros of different lengths differ */
	memset(data, 0, sizeof(data));
	for (size_t size = 1; size < sizeof(data); size++)
		CHECK(!same(hash_in_pieces(&key, data, size, 300), hash_in_pieces(&key, data, size - 1, 300)));
}
