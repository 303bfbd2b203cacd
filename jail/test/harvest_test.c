/* The harvest of a workspace that takes too long, by a clock that jumps when it is looked at. */
#include "files/harvest.h"
#include "lib/util.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define JUMP_US 60000000

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

static void make_file(int directory, const char *name)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
}

/* Only the counts of the listing are looked at. */
static void list(int workspace)
{
	harvest(workspace, &inputs, false, &listing);
	free(listing.entries);
	free(listing.text);
}

void test_harvest(void)
{
	char place[] = "/tmp/svc-harvest-XXXXXX";
	struct input *input;
	int workspace;

	CHECK(mkdtemp(place) != NULL);
	workspace = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(workspace >= 0);
	make_file(workspace, "input");
	make_file(workspace, "made");
	input = inputs_add(&inputs, 0, false, "input", 5, 1);
	CHECK(input && inputs_sort(&inputs));

	list(workspace);
	CHECK(listing.count == 2 && listing.file_count == 2 && listing.unlisted == 0 && listing.flags == 0);
	/* A comparison that takes all its time takes none of the walk's. */
	jumps = 2;
	list(workspace);
	CHECK(jumps == 0 && listing.file_count == 2 && listing.unlisted == 0 && listing.flags == 0);
	/* A walk that is late may have missed anything: that counts, whatever it found. */
	jumps = 4;
	list(workspace);
	CHECK(jumps == 0 && listing.file_count == 1 && listing.unlisted == 1);
	CHECK(listing.flags == (LISTING_TRUNCATED | LISTING_TIMED_OUT));

	CHECK(unlinkat(workspace, "input", 0) == 0 && unlinkat(workspace, "made", 0) == 0);
	CHECK(close(workspace) == 0 && rmdir(place) == 0);
	free(input->path);
}
