/* The listing: order of bytes, bounds, numbers of files, and the bytes on the wire. */
#include "files/listing.h"
#include "test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void add(struct listing *listing, uint8_t tag, const char *path)
{
	listing_add(listing, (struct entry){.tag = tag, .input = NO_INPUT, .size = 5}, path, strlen(path));
}

static void release(struct listing *listing)
{
	free(listing->entries);
	free(listing->text);
	memset(listing, 0, sizeof(*listing));
}

static void sorts_by_bytes(void)
{
	static const char *const names[] = {"b", "a/x", "a-b", "a.b", "a", "\xff", "A", "a/b/c", "aa", "a b"};
	static const char *const sorted[] = {"A", "a", "a b", "a-b", "a.b", "a/b/c", "a/x", "aa", "b", "\xff"};
	static struct listing listing;

	for (size_t i = 0; i < 10; i++)
		add(&listing, i % 2 ? 'f' : 'o', names[i]);
	listing_finish(&listing);
	CHECK(listing.count == 10 && listing.file_count == 5 && listing.flags == 0);
	for (size_t i = 0; i < 10; i++)
		CHECK(strcmp(listing_path(&listing, &listing.entries[i]), sorted[i]) == 0);
	for (uint32_t i = 0; i < listing.file_count; i++)
		CHECK(listing.entries[listing.files[i]].tag == 'f');
	release(&listing);
}

static void keeps_the_first_entries(void)
{
	static struct listing listing;
	char name[16];

	for (int i = LISTED_MAX + 5; i > 0; i--) {
		snprintf(name, sizeof(name), "%06d", i);
		add(&listing, 'f', name);
	}
	listing_add(&listing, (struct entry){.tag = 'f', .input = 3}, "zzz", 3);
	listing_finish(&listing);
	CHECK(listing.count == LISTED_MAX + 1 && listing.unlisted == 5 && listing.flags == LISTING_TRUNCATED);
	CHECK(listing.file_count == LISTED_MAX + 1 && listing.entries[LISTED_MAX].input == 3);
	CHECK(strcmp(listing_path(&listing, &listing.entries[0]), "000001") == 0);
	release(&listing);
}

/* In an order in which each one belongs before the half of all others. */
static void needs_no_more_memory_for_more_files(void)
{
	const size_t count = 5 * LISTED_MAX;
	static struct listing listing;
	char name[240];

	listing_add(&listing, (struct entry){.tag = 'f', .input = 1}, "zzz", 3);
	for (size_t i = 0; i < count; i++) {
		int size = snprintf(name, sizeof(name), "%06zu/", (i * 7919) % count);

		memset(name + size, 'x', sizeof(name) - (size_t)size - 1);
		name[sizeof(name) - 1] = '\0';
		add(&listing, 'f', name);
	}
	CHECK(listing.capacity <= 1u << 15 && listing.text_capacity <= 8u << 20);
	listing_finish(&listing);
	CHECK(listing.count == LISTED_MAX + 1 && listing.unlisted == count - LISTED_MAX && listing.flags == LISTING_TRUNCATED);
	for (size_t i = 0; i < LISTED_MAX; i++)
		CHECK(strtoul(listing_path(&listing, &listing.entries[i]), NULL, 10) == i && listing.entries[i].path_size == 239);
	CHECK(listing.entries[LISTED_MAX].input == 1 && strcmp(listing_path(&listing, &listing.entries[LISTED_MAX]), "zzz") == 0);
	release(&listing);
}

static void keeps_targets_with_their_links(void)
{
	static struct listing listing;
	char name[16], target[TARGET_BYTES_MAX];

	for (unsigned i = 3 * LISTED_MAX; i > 0; i--) {
		size_t size = i % 7 ? 1 + i % 100 : 1 + i % 1000;

		snprintf(name, sizeof(name), "%06u", i);
		memset(target, (int)(i % 251 + 1), size);
		listing_add_link(&listing, (struct entry){.tag = 'y', .input = NO_INPUT, .size = size}, name, 6, target);
	}
	CHECK(listing.text_capacity <= 8u << 20);
	listing_finish(&listing);
	CHECK(listing.count == LISTED_MAX && listing.unlisted == 2 * LISTED_MAX);
	for (unsigned i = 1; i <= LISTED_MAX; i++) {
		const struct entry *entry = &listing.entries[i - 1];
		const uint8_t *kept = (const uint8_t *)listing_target(&listing, entry);

		CHECK(strtoul(listing_path(&listing, entry), NULL, 10) == i);
		CHECK(entry->size == (i % 7 ? 1 + i % 100 : 1 + i % 1000));
		for (size_t at = 0; at < entry->size; at++)
			CHECK(kept[at] == i % 251 + 1);
	}
	release(&listing);
}

static void sends_frames(void)
{
	static const uint8_t expected[] = {
		23, 0, 0, 0, 'f', 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0xff, 1, 'a', '/', 'b',
		9, 0, 0, 0, 'v', 7, 0, 0, 0, 0xc0, 1, 1, 'd',
		4, 0, 0, 0, 'o', 0, 'l', 'n',
		10, 0, 0, 0, 'y', 'm', 'n', '\0', 'w', 'h', 'e', 'r', 'e', '/',
		13, 0, 0, 0, 'z', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	};
	static struct listing listing;
	uint8_t bytes[256];
	struct conn conn;
	int ends[2];

	add(&listing, 'o', "ln");
	listing_add(&listing, (struct entry){.tag = 'f', .input = NO_INPUT, .size = 5, .mode = 0777}, "a/b", 3);
	listing_add(&listing, (struct entry){.tag = 'v', .input = 7, .detail = 1, .mode = 0700}, "d", 1);
	listing_add_link(&listing, (struct entry){.tag = 'y', .input = NO_INPUT, .size = 6}, "mn", 2, "where/");
	listing_finish(&listing);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
	conn_begin(&conn, ends[0], 1000000);
	listing_send(&listing, &conn);
	CHECK(conn_flush(&conn));
	CHECK(read(ends[1], bytes, sizeof(bytes)) == (ssize_t)sizeof(expected));
	CHECK(memcmp(bytes, expected, sizeof(expected)) == 0);
	close(ends[0]);
	close(ends[1]);
	release(&listing);
}

void test_listing(void)
{
	sorts_by_bytes();
	keeps_the_first_entries();
	needs_no_more_memory_for_more_files();
	keeps_targets_with_their_links();
	sends_frames();
}
