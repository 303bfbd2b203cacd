/* The harvest of a workspace that takes too long, by a clock that jumps when it is looked at. */
#include "files/harvest.h"
#include "lib/util.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define JUMP_US 60000000
#define LARGE (1u << 20) /* more than one read */

uint64_t __real_monotonic_us(void);
uint64_t __wrap_monotonic_us(void);

static struct inputs inputs;
static struct listing listing;
static unsigned jumps; /* so many looks at the clock are late, each by one more jump */
static uint64_t ahead;

uint64_t __wrap_monotonic_us(void)
{
	if (jumps > 0) {
		jumps--;
		ahead += JUMP_US;
	}
	return __real_monotonic_us() + ahead;
}

static unsigned unchanged;

/* Of the size: "x", and zeros. */
static void make_file(int directory, const char *name, off_t size)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && ftruncate(fd, size) == 0 && close(fd) == 0);
}

static char *make_input(int directory, uint32_t index, const char *name, size_t size)
{
	static uint8_t bytes[LARGE] = "x";
	struct input *input = inputs_add(&inputs, index, false, name, strlen(name), size);
	struct hash hash;

	make_file(directory, name, (off_t)size);
	CHECK(input);
	hash_begin(&hash, &inputs.key);
	hash_add(&hash, bytes, size);
	input->hash = hash_end(&hash);
	return input->path;
}

/* Only the counts of the listing are looked at. */
static void list(int workspace)
{
	harvest(workspace, &inputs, false, &listing);
	unchanged = 0;
	for (size_t i = 0; i < listing.count; i++)
		unchanged += listing.entries[i].tag == 'f' && listing.entries[i].detail == FILE_UNCHANGED;
	free(listing.entries);
	free(listing.text);
}

void test_harvest(void)
{
	char place[] = "/tmp/svc-harvest-XXXXXX";
	char *large, *small;
	int workspace;

	CHECK(mkdtemp(place) != NULL);
	workspace = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(workspace >= 0 && hash_key_make(&inputs.key) == 0);
	make_file(workspace, "made", 1);
	large = make_input(workspace, 0, "large", LARGE);
	small = make_input(workspace, 1, "small", 1);
	CHECK(inputs_sort(&inputs));

	list(workspace);
	CHECK(listing.count == 3 && listing.file_count == 3 && unchanged == 2);
	CHECK(listing.unlisted == 0 && listing.flags == 0);
	/* A comparison that takes all its time takes none of the walk's, and none of small inputs'. */
	jumps = 2;
	list(workspace);
	CHECK(jumps == 0 && listing.file_count == 3 && unchanged == 1);
	CHECK(listing.unlisted == 0 && listing.flags == LISTING_UNCOMPARED);
	/* A walk that is late may have missed anything: that counts, whatever it found. */
	jumps = 4;
	list(workspace);
	CHECK(jumps == 0 && listing.file_count == 2 && unchanged == 1 && listing.unlisted == 1);
	CHECK(listing.flags == (LISTING_TRUNCATED | LISTING_TIMED_OUT | LISTING_UNCOMPARED));

	CHECK(unlinkat(workspace, large, 0) == 0 && unlinkat(workspace, small, 0) == 0);
	CHECK(unlinkat(workspace, "made", 0) == 0 && close(workspace) == 0 && rmdir(place) == 0);
	free(large);
	free(small);
}
