/*
 * The harvest: the bytes say what a program made of its workspace. Nothing from outside may be
 * listed or read, and what is listed is what is there.
 */
#include "files/harvest.h"

#include "fuzz.h"
#include "lib/sys.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "never to be seen"
#define ACTIONS_MAX 200
#define DEPTH_MAX 80
#define RECEIVED_MAX (4u << 20)

enum action {
	MAKE_FILE, MAKE_DIRECTORY, MAKE_LINK, MAKE_FIFO, MAKE_HARD_LINK, ENTER, LEAVE, MAKE_INPUT, REMOVE, ACTIONS,
};

static const char *const targets[] = {"/", "..", "../secret", "/proc/self/root", "/proc/self/fd/0", ".", "a", "a/b"};

static struct inputs inputs;
static uint8_t received[RECEIVED_MAX];

/* The place of the program: where its next action happens. */
struct place {
	int directory[DEPTH_MAX];
	size_t size[DEPTH_MAX]; /* of the path so far */
	int depth;
	char path[DEPTH_MAX * (NAME_MAX + 1)];
};

static void take_name(struct bytes *bytes, char name[NAME_MAX + 1])
{
	unsigned size = take(bytes), kind = size >> 6;

	/* Mostly short names that meet again, sometimes long ones, sometimes any bytes. */
	size = kind < 3 ? 1 + size % 3 : 1u + take(bytes) % NAME_MAX;
	for (unsigned i = 0; i < size; i++) {
		char c = (char)take(bytes);

		if (kind < 2)
			c = "ab."[(unsigned char)c % 3];
		name[i] = c == '/' || c == '\0' ? 'x' : c;
	}
	name[size] = '\0';
}

static void make_file(int directory, const char *name, struct bytes *bytes)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, take(bytes) & 0777);
	uint8_t size = take(bytes);

	if (fd < 0)
		return;
	for (uint8_t i = 0; i < size; i++)
		PROMISE(write(fd, &i, 1) == 1);
	close(fd);
}

static void enter(struct place *place, const char *name)
{
	int at = place->depth, fd;
	size_t length = strlen(name);

	if (at + 1 == DEPTH_MAX || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	fd = openat(place->directory[at], name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	memcpy(place->path + place->size[at], name, length);
	place->path[place->size[at] + length] = '/';
	place->directory[at + 1] = fd;
	place->size[at + 1] = place->size[at] + length + 1;
	place->depth++;
}

/* Says that the name was an input, whatever stands there by now. */
static void make_input(struct place *place, const char *name, struct bytes *bytes)
{
	size_t start = place->size[place->depth], size = start + strlen(name);
	uint8_t word = take(bytes);
	struct hash hash;
	struct input *input;

	memcpy(place->path + start, name, size - start);
	if (!path_is_valid(place->path, size))
		return;
	input = inputs_add(&inputs, (uint32_t)inputs.count, word & 1, place->path, size, word >> 1);
	if (!input)
		return;
	hash_begin(&hash, &inputs.key);
	for (uint8_t i = 0; i < word >> 1; i++)
		hash_add(&hash, &i, 1);
	input->hash = hash_end(&hash);
}

static void act(struct place *place, struct bytes *bytes)
{
	int directory = place->directory[place->depth];
	enum action action = take(bytes) % ACTIONS;
	char name[NAME_MAX + 1], other[NAME_MAX + 1];

	if (action == LEAVE) {
		if (place->depth > 0)
			close(place->directory[place->depth--]);
		return;
	}
	take_name(bytes, name);
	switch (action) {
	case MAKE_FILE: make_file(directory, name, bytes); break;
	case MAKE_DIRECTORY: (void)mkdirat(directory, name, take(bytes) & 0777); break;
	case MAKE_LINK: (void)!symlinkat(targets[take(bytes) % 8], directory, name); break;
	case MAKE_FIFO: (void)mkfifoat(directory, name, 0600); break;
	case MAKE_HARD_LINK:
		take_name(bytes, other);
		(void)!linkat(directory, name, directory, other, 0);
		break;
	case ENTER: enter(place, name); break;
	case MAKE_INPUT: make_input(place, name, bytes); break;
	case REMOVE:
		if (unlinkat(directory, name, 0) < 0)
			(void)unlinkat(directory, name, AT_REMOVEDIR);
		break;
	default: break;
	}
}

static size_t receive_all(int fd)
{
	size_t size = 0;
	ssize_t n;

	while ((n = recv(fd, received + size, sizeof(received) - size, 0)) > 0)
		size += (size_t)n;
	PROMISE(size < sizeof(received));
	return size;
}

static void expect_entry(int workspace, const struct listing *listing, const struct entry *entry)
{
	const char *path = listing_path(listing, entry);
	struct stat st;
	int fd;

	PROMISE(strlen(path) == entry->path_size);
	if (entry->tag == 'o' && entry->detail == OMITTED_NAME)
		return;
	PROMISE(path_is_valid(path, entry->path_size));
	if (entry->tag == 'm')
		return;
	fd = sys_openat2(workspace, path, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	PROMISE(fd >= 0 && fstat(fd, &st) == 0);
	close(fd);
	switch (entry->tag) {
	case 'f':
		PROMISE(S_ISREG(st.st_mode) && (uint64_t)st.st_size == entry->size);
		PROMISE((st.st_mode & 0777) == entry->mode);
		break;
	case 'y': PROMISE(S_ISLNK(st.st_mode) && (uint64_t)st.st_size == entry->size); break;
	case 'v': PROMISE((st.st_mode & 0777) == entry->mode); /* fall through */
	case 'd':
	case 'k': PROMISE(S_ISDIR(st.st_mode)); break;
	default: PROMISE(entry->tag == 'o' && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
	}
}

static void expect_frames(int fd, const struct listing *listing)
{
	size_t size = receive_all(fd), at = 0, count = 0;
	struct frame frame = {0};

	while (at < size) {
		ssize_t used = frame_decode(received + at, size - at, &frame);

		PROMISE(used > 0);
		at += (size_t)used;
		count++;
	}
	PROMISE(count == listing->count + 1 && frame.tag == 'z');
}

static void expect_file(int fd, uint64_t size)
{
	size_t received_size = receive_all(fd), at = 0;
	uint64_t body = 0;
	struct frame frame;

	while (at < received_size) {
		ssize_t used = frame_decode(received + at, received_size - at, &frame);

		PROMISE(used > 0 && (at > 0 || frame.tag == 'g'));
		at += (size_t)used;
		body += frame.tag == 'b' ? frame.size : 0;
	}
	PROMISE(body == size && !memmem(received, received_size, SECRET, strlen(SECRET)));
}

/* What a whole listing tells: everything, but nothing below what is too deep. `start`: where names begin in a path. */
static size_t count_below(int directory, size_t start, unsigned depth)
{
	DIR *open_directory = fdopendir(directory);
	struct dirent *found;
	size_t count = 0;

	PROMISE(open_directory != NULL);
	while ((found = readdir(open_directory))) {
		size_t size = start + strlen(found->d_name);
		int below = -1;

		if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
			continue;
		count++;
		if (depth <= PATH_DEPTH_MAX && size <= PATH_BYTES_MAX)
			below = openat(directory, found->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (below >= 0)
			count += count_below(below, size + 1, depth + 1);
	}
	closedir(open_directory);
	return count;
}

static void expect_everything(int workspace, const struct listing *listing)
{
	size_t listed = 0;

	for (size_t i = 0; i < listing->count; i++)
		listed += listing->entries[i].tag != 'm';
	PROMISE(listing->flags != 0 ||
		listed == count_below(openat(workspace, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, 1));
}

static void look(int workspace, bool whole)
{
	static struct listing listing;
	struct conn conn;
	int ends[2];

	pair_open(ends);
	harvest(workspace, &inputs, whole, &listing);
	if (whole)
		expect_everything(workspace, &listing);
	for (size_t i = 0; i < listing.count; i++) {
		expect_entry(workspace, &listing, &listing.entries[i]);
		PROMISE(i == 0 || strcmp(listing_path(&listing, &listing.entries[i - 1]),
					 listing_path(&listing, &listing.entries[i])) <= 0);
	}
	conn_begin(&conn, ends[0], 0);
	listing_send(&listing, &conn);
	PROMISE(conn_flush(&conn));
	expect_frames(ends[1], &listing);
	for (uint32_t i = 0; i < listing.file_count; i++) {
		harvest_send_file(workspace, &listing, i, &conn);
		PROMISE(conn_flush(&conn));
		expect_file(ends[1], listing.entries[listing.files[i]].size);
	}
	free(listing.entries);
	free(listing.text);
	close(ends[0]);
	close(ends[1]);
}

static void make_secret(int playground)
{
	int fd = openat(playground, "secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	PROMISE(fd >= 0 && write(fd, SECRET, strlen(SECRET)) == (ssize_t)strlen(SECRET));
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct place place;
	static int playground = -1;
	struct bytes bytes = {data, data + size};
	int workspace;

	if (playground < 0) {
		playground = playground_open();
		PROMISE(hash_key_make(&inputs.key) == 0);
	}
	make_secret(playground);
	workspace = openat(playground, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place.depth = 0;
	place.directory[0] = openat(workspace, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	PROMISE(place.directory[0] >= 0);
	for (int i = 0; i < ACTIONS_MAX && bytes.at < bytes.end; i++)
		act(&place, &bytes);
	/* Two inputs of one path are refused before a program runs. */
	for (int whole = 0; whole <= 1 && inputs_sort(&inputs); whole++)
		look(workspace, whole);
	for (size_t i = 0; i < inputs.count; i++)
		free(inputs.item[i].path);
	inputs.count = 0;
	while (place.depth >= 0)
		close(place.directory[place.depth--]);
	close(workspace);
	PROMISE(unlinkat(playground, "secret", 0) == 0);
	playground_clear(playground);
	return 0;
}
