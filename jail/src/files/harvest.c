#include "files/harvest.h"

#include "lib/sys.h"
#include "lib/util.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TIME_US 2000000 /* for comparing the inputs, and again for the walk */
#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
#define READ_SIZE (256u << 10)

_Static_assert(NUMBERED_MAX == LISTED_MAX + INPUTS_MAX, "every file that is listed has a number");

static uint8_t buffer[READ_SIZE];

struct walk {
	const struct inputs *inputs;
	struct listing *listing;
	bool whole;
	bool late;
	uint64_t deadline;
	unsigned countdown; /* entries until the clock is read again */
	char path[PATH_BYTES_MAX + NAME_BYTES_MAX + 2];
};

/* Counts an entry that cannot be examined; no program can cause that. */
static void lose(struct walk *w)
{
	w->listing->unlisted++;
	w->listing->flags |= LISTING_TRUNCATED;
}

/* All entries that a late walk does not reach count as one, because their number is not known. */
static bool is_late(struct walk *w)
{
	if (w->late || w->countdown-- > 0)
		return w->late;
	w->countdown = 64;
	if (monotonic_us() <= w->deadline)
		return false;
	w->late = true;
	w->listing->flags |= LISTING_TIMED_OUT;
	lose(w);
	return true;
}

static int open_beneath(int directory, const char *path, uint64_t flags)
{
	if (!(flags & O_PATH))
		flags |= O_NONBLOCK | O_NOCTTY;
	return sys_openat2(directory, path, flags | O_NOFOLLOW | O_CLOEXEC, BENEATH);
}

/*
 * An input is unchanged when its bytes are the same. A file that is not read in time counts as changed, and the listing
 * says so. A file that fits into one read is always compared: the size of the workspace bounds the time. False when the
 * file cannot be read.
 */
static bool compare_input(struct walk *w, int fd, const struct input *input, struct entry *entry)
{
	struct hash_value value;
	struct hash hash;
	ssize_t n;

	entry->detail = FILE_CHANGED;
	if (entry->size != input->size)
		return true;
	hash_begin(&hash, &w->inputs->key);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
		hash_add(&hash, buffer, (size_t)n);
		if (entry->size > READ_SIZE && monotonic_us() > w->deadline) {
			if (!input->read_only)
				w->listing->flags |= LISTING_UNCOMPARED;
			return true;
		}
	}
	value = hash_end(&hash);
	if (memcmp(&value, &input->hash, sizeof(value)) == 0)
		entry->detail = FILE_UNCHANGED;
	return n == 0;
}

static void look_at_input(struct walk *w, int workspace, const struct input *input)
{
	struct entry entry = {.tag = 'm', .input = input->index};
	int fd = open_beneath(workspace, input->path, O_PATH), data = -1;
	bool compared = fd >= 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) < 0) {
		compared = false;
	} else if (fd >= 0 && input->directory && S_ISDIR(st.st_mode)) {
		entry.tag = w->whole ? 'v' : 'k';
		entry.mode = st.st_mode & MODE_MAX;
	} else if (fd >= 0 && !input->directory && S_ISREG(st.st_mode)) {
		entry.tag = 'f';
		entry.size = (uint64_t)st.st_size;
		entry.inode = st.st_ino;
		entry.mode = st.st_mode & MODE_MAX;
		data = open_beneath(workspace, input->path, O_RDONLY);
		compared = data >= 0 && compare_input(w, data, input, &entry);
	}
	if (data >= 0)
		close(data);
	if (fd >= 0)
		close(fd);
	if (compared)
		listing_add(w->listing, entry, input->path, strlen(input->path));
	else
		lose(w);
}

static bool walk_directory(struct walk *w, int fd, size_t size, unsigned depth);

static void look_at_directory(struct walk *w, int parent, const char *name, size_t size, unsigned depth, mode_t mode)
{
	struct entry entry = {.tag = w->whole ? 'v' : 'd', .input = NO_INPUT, .mode = mode & MODE_MAX};
	const struct input *input;
	int fd;

	if (name[0] == '.' && !w->whole && !inputs_below(w->inputs, w->path))
		return;
	fd = open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		lose(w);
		return;
	}
	entry.detail = walk_directory(w, fd, size, depth);
	if (!w->whole && !entry.detail)
		return;
	input = inputs_find(w->inputs, w->path);
	if (!(input && input->directory))
		listing_add(w->listing, entry, w->path, size);
}

static void look_at_link(struct walk *w, int parent, const char *name, size_t size)
{
	struct entry entry = {.tag = 'y', .input = NO_INPUT};
	ssize_t n = readlinkat(parent, name, (char *)buffer, TARGET_BYTES_MAX + 1);

	if (n < 1 || n > TARGET_BYTES_MAX) {
		lose(w);
		return;
	}
	entry.size = (uint64_t)n;
	listing_add_link(w->listing, entry, w->path, size, buffer);
}

static void look_at(struct walk *w, int parent, const char *name, size_t size, unsigned depth)
{
	struct entry entry = {.tag = 'o', .input = NO_INPUT};
	const struct input *input;
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		lose(w);
		return;
	}
	if (depth > PATH_DEPTH_MAX || size > PATH_BYTES_MAX) {
		entry.detail = OMITTED_NAME;
	} else if (S_ISDIR(st.st_mode)) {
		look_at_directory(w, parent, name, size, depth, st.st_mode);
		return;
	} else if (S_ISLNK(st.st_mode) && w->whole) {
		look_at_link(w, parent, name, size);
		return;
	} else if (S_ISREG(st.st_mode)) {
		input = inputs_find(w->inputs, w->path);
		if (input && !input->directory)
			return;
		entry.tag = 'f';
		entry.detail = FILE_NEW;
		entry.size = (uint64_t)st.st_size;
		entry.inode = st.st_ino;
		entry.mode = st.st_mode & MODE_MAX;
	} else {
		entry.detail = OMITTED_TYPE;
	}
	listing_add(w->listing, entry, w->path, size);
}

/* Consumes fd. w->path holds `size` bytes of the directory's own path. True when the directory is known to be empty. */
static bool walk_directory(struct walk *w, int fd, size_t size, unsigned depth)
{
	DIR *directory = fdopendir(fd);
	struct dirent *found;
	bool empty = true;

	if (!directory) {
		close(fd);
		lose(w);
		return false;
	}
	while (errno = 0, !is_late(w) && (found = readdir(directory))) {
		size_t length = strlen(found->d_name), start = size > 0 ? size + 1 : 0;

		if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
			continue;
		empty = false;
		if (size > 0)
			w->path[size] = '/';
		memcpy(w->path + start, found->d_name, length + 1);
		look_at(w, fd, found->d_name, start + length, depth + 1);
		w->path[size] = '\0';
	}
	if (errno != 0) {
		lose(w);
		empty = false;
	}
	closedir(directory);
	return empty && !is_late(w);
}

void harvest(int workspace, const struct inputs *inputs, bool whole, struct listing *listing)
{
	static struct walk w;
	int root;

	w = (struct walk){
		.inputs = inputs, .listing = listing, .whole = whole, .deadline = monotonic_us() + TIME_US};
	memset(listing, 0, offsetof(struct listing, files));
	for (size_t i = 0; i < inputs->count; i++)
		look_at_input(&w, workspace, &inputs->item[i]);
	/* Comparing large inputs may use up the first deadline. The walk gets its own, so that new files are found all the same. */
	w.deadline = monotonic_us() + TIME_US;
	root = open_beneath(workspace, ".", O_RDONLY | O_DIRECTORY);
	if (root >= 0)
		walk_directory(&w, root, 0, 0);
	else
		lose(&w);
	listing_finish(listing);
}

static int open_listed(int workspace, const struct listing *listing, uint32_t number, uint64_t *size)
{
	const struct entry *entry;
	struct stat st;
	int fd;

	if (number >= listing->file_count)
		return -1;
	entry = &listing->entries[listing->files[number]];
	fd = open_beneath(workspace, listing_path(listing, entry), O_RDONLY);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == entry->inode &&
	    (uint64_t)st.st_size == entry->size) {
		*size = entry->size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

void harvest_send_file(int workspace, const struct listing *listing, uint32_t number, struct conn *conn)
{
	uint64_t left = 0;
	int fd = open_listed(workspace, listing, number, &left);
	uint8_t head[12];

	put_u64(put_u32(head, number), left);
	if (fd < 0) {
		conn_send(conn, 'n', head, 4, NULL, 0);
		return;
	}
	conn_send(conn, 'g', head, 12, NULL, 0);
	while (left > 0 && !conn->broken) {
		ssize_t n = read(fd, buffer, left < sizeof(buffer) ? left : sizeof(buffer));

		if (n <= 0)
			conn->broken = true; /* fewer bytes than announced: the connection must be closed */
		else
			conn_send(conn, 'b', buffer, (size_t)n, NULL, 0);
		left -= n > 0 ? (uint64_t)n : 0;
	}
	close(fd);
}
