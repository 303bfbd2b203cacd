#include "files/listing.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (64u << 20)
#define ENTRIES_MAX (1u << 16)
#define MADE_MAX (2 * LISTED_MAX) /* entries of the run that trigger pruning */

static bool grow(void **memory, size_t *capacity, size_t needed, size_t unit, size_t max)
{
	size_t wanted = *capacity ? *capacity : 256;
	void *larger;

	if (needed <= *capacity)
		return true;
	if (needed > max)
		return false;
	while (wanted < needed)
		wanted *= 2;
	larger = realloc(*memory, wanted * unit);
	if (!larger)
		return false;
	*memory = larger;
	*capacity = wanted;
	return true;
}

const char *listing_path(const struct listing *listing, const struct entry *entry)
{
	return listing->text + entry->path;
}

const char *listing_target(const struct listing *listing, const struct entry *entry)
{
	return listing_path(listing, entry) + entry->path_size + 1;
}

/* The bytes that the listing stores for an entry: the path, a NUL, and the target of a symlink. */
static size_t text_size(const struct entry *entry)
{
	return entry->path_size + 1u + (entry->tag == 'y' ? entry->size : 0);
}

/* The bytes of them that are sent. The number of an input needs no path, and only a target needs the NUL. */
static size_t sent_size(const struct entry *entry)
{
	switch (entry->tag) {
	case 'k':
	case 'm':
		return 0;
	case 'y':
		return text_size(entry);
	default:
		return entry->path_size;
	}
}

static int compare(const void *a, const void *b, void *text)
{
	const struct entry *left = a, *right = b;
	size_t size = left->path_size < right->path_size ? left->path_size : right->path_size;
	int order = memcmp((char *)text + left->path, (char *)text + right->path, size);

	if (order == 0)
		order = (left->path_size > right->path_size) - (left->path_size < right->path_size);
	/* A missing input and the entry that replaced it have the same path. */
	return order ? order : (left->tag > right->tag) - (left->tag < right->tag);
}

/* Keeps all inputs and the first LISTED_MAX other entries: a run cannot push its inputs out of the listing by making many files. */
static void keep_first(struct listing *listing)
{
	size_t kept = 0, made = 0;

	for (size_t i = 0; i < listing->count; i++) {
		if (listing->entries[i].input == NO_INPUT && ++made > LISTED_MAX)
			continue;
		listing->entries[kept++] = listing->entries[i];
	}
	if (kept < listing->count)
		listing->flags |= LISTING_TRUNCATED;
	listing->unlisted += listing->count - kept;
	listing->count = kept;
}

static void sort_and_cut(struct listing *listing)
{
	if (listing->count > 1)
		qsort_r(listing->entries, listing->count, sizeof(struct entry), compare, listing->text);
	keep_first(listing);
}

static int compare_places(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return (left->path > right->path) - (left->path < right->path);
}

/* Bounds memory: an entry that is not among the first LISTED_MAX now cannot be among them later. */
static void prune(struct listing *listing)
{
	size_t size = 0;

	sort_and_cut(listing);
	qsort(listing->entries, listing->count, sizeof(struct entry), compare_places);
	for (size_t i = 0; i < listing->count; i++) {
		struct entry *entry = &listing->entries[i];

		memmove(listing->text + size, listing->text + entry->path, text_size(entry));
		entry->path = size;
		size += text_size(entry);
	}
	listing->text_size = size;
	listing->made = LISTED_MAX;
}

void listing_add(struct listing *listing, struct entry entry, const char *path, size_t path_size)
{
	listing_add_link(listing, entry, path, path_size, NULL);
}

void listing_add_link(struct listing *listing, struct entry entry, const char *path, size_t path_size,
		      const void *target)
{
	entry.path_size = (uint16_t)path_size;
	if (entry.input == NO_INPUT && listing->made == MADE_MAX)
		prune(listing);
	if (!grow((void **)&listing->entries, &listing->capacity, listing->count + 1, sizeof(entry),
		  ENTRIES_MAX) ||
	    !grow((void **)&listing->text, &listing->text_capacity, listing->text_size + text_size(&entry), 1,
		  TEXT_MAX)) {
		listing->unlisted++;
		listing->flags |= LISTING_TRUNCATED;
		return;
	}
	entry.path = listing->text_size;
	memcpy(listing->text + entry.path, path, path_size);
	listing->text[entry.path + path_size] = '\0';
	if (entry.tag == 'y')
		memcpy(listing->text + entry.path + path_size + 1, target, entry.size);
	listing->text_size += text_size(&entry);
	listing->entries[listing->count++] = entry;
	listing->made += entry.input == NO_INPUT;
}

void listing_finish(struct listing *listing)
{
	sort_and_cut(listing);
	listing->file_count = 0;
	for (uint32_t i = 0; i < listing->count && listing->file_count < NUMBERED_MAX; i++)
		if (listing->entries[i].tag == 'f')
			listing->files[listing->file_count++] = i;
}

/* Writes the part of an entry's frame that precedes the path. */
static uint8_t *put_head(uint8_t *at, const struct entry *entry, uint32_t *number)
{
	switch (entry->tag) {
	case 'f':
		at = put_u8(put_u32(at, (*number)++), entry->detail);
		at = put_u64(put_u32(at, entry->input), entry->size);
		return put_u16(at, (uint16_t)entry->mode);
	case 'v':
		return put_u8(put_u16(put_u32(at, entry->input), (uint16_t)entry->mode), entry->detail);
	case 'o':
		return put_u8(at, entry->detail);
	case 'k':
	case 'm':
		return put_u32(at, entry->input);
	default:
		return at;
	}
}

void listing_send(const struct listing *listing, struct conn *conn)
{
	uint8_t head[32], *at;
	uint32_t number = 0;

	for (size_t i = 0; i < listing->count; i++) {
		const struct entry *entry = &listing->entries[i];

		at = put_head(head, entry, &number);
		conn_send(conn, entry->tag, head, (size_t)(at - head), listing_path(listing, entry), sent_size(entry));
	}
	at = put_u64(put_u32(head, listing->flags), listing->unlisted);
	conn_send(conn, 'z', head, (size_t)(at - head), NULL, 0);
}
