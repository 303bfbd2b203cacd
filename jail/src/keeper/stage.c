#include "keeper/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Makes `name` if it is missing and opens it; closes `parent`. A pre-started program may replace it in between: the open
 * accepts only a directory, so the program can never become the owner of a read-only file.
 */
static int enter_directory(const struct stage *stage, int parent, const char *name, int flags)
{
	bool made = mkdirat(parent, name, 0755) == 0;
	int fd = -1, saved;

	if (made || errno == EEXIST)
		fd = openat(parent, name, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	saved = errno;
	if (fd >= 0 && made && fchownat(fd, "", stage->uid, stage->gid, AT_EMPTY_PATH) < 0) {
		saved = errno;
		close(fd);
		fd = -1;
	}
	close(parent);
	errno = saved;
	return fd;
}

/* Opens the parent directory of a path and makes missing directories. */
static int open_parent(const struct stage *stage, const char *path, size_t size, char *name)
{
	int directory = fcntl(stage->workspace, F_DUPFD_CLOEXEC, 3);
	size_t start = 0;

	for (size_t i = 0; directory >= 0 && i < size; i++) {
		if (path[i] != '/')
			continue;
		memcpy(name, path + start, i - start);
		name[i - start] = '\0';
		directory = enter_directory(stage, directory, name, O_PATH);
		start = i + 1;
	}
	memcpy(name, path + start, size - start);
	name[size - start] = '\0';
	return directory;
}

/* Closes the descriptor of a step and keeps the error of one that failed. */
static int finish(int fd, bool failed)
{
	int saved = errno;

	close(fd);
	errno = saved;
	return failed ? -1 : 0;
}

int stage_directory(const struct stage *stage, const struct directory_header *directory)
{
	char name[NAME_BYTES_MAX + 1];
	int parent = open_parent(stage, directory->path, directory->path_size, name), fd;

	if (parent < 0)
		return -1;
	fd = enter_directory(stage, parent, name, O_RDONLY);
	if (fd < 0)
		return -1;
	return finish(fd, fchmod(fd, directory->mode) < 0 || fchown(fd, stage->uid, stage->gid) < 0);
}

/* Changes the owner by descriptor, and only of a link: a pre-started program may have put a read-only file in its place. */
static int give_link(const struct stage *stage, int parent, const char *name)
{
	int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return finish(fd, true);
	if (!S_ISLNK(st.st_mode)) {
		errno = EEXIST;
		return finish(fd, true);
	}
	return finish(fd, fchownat(fd, "", stage->uid, stage->gid, AT_EMPTY_PATH) < 0);
}

int stage_link(const struct stage *stage, const struct link_header *link)
{
	char name[NAME_BYTES_MAX + 1], target[TARGET_BYTES_MAX + 1];
	int parent = open_parent(stage, link->path, link->path_size, name);

	if (parent < 0)
		return -1;
	memcpy(target, link->target, link->target_size);
	target[link->target_size] = '\0';
	return finish(parent, symlinkat(target, parent, name) < 0 || give_link(stage, parent, name) < 0);
}

int stage_file(const struct stage *stage, const struct file_header *file)
{
	char name[NAME_BYTES_MAX + 1];
	int parent = open_parent(stage, file->path, file->path_size, name), fd;

	if (parent < 0)
		return -1;
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (finish(parent, fd < 0) < 0)
		return -1;
	if (fchmod(fd, file->mode) < 0 || (!file->read_only && fchown(fd, stage->uid, stage->gid) < 0))
		return finish(fd, true);
	return fd;
}

static bool is_full(const struct inputs *inputs)
{
	errno = E2BIG;
	return inputs->count + inputs->links == INPUTS_MAX;
}

struct input *inputs_add(struct inputs *inputs, uint32_t index, bool directory, const char *path,
			 size_t path_size, uint64_t size)
{
	struct input *input = &inputs->item[inputs->count];

	if (is_full(inputs))
		return NULL;
	*input = (struct input){
		.index = index, .directory = directory, .path = strndup(path, path_size), .size = size};
	if (!input->path)
		return NULL;
	inputs->count++;
	return input;
}

bool inputs_count_link(struct inputs *inputs)
{
	if (is_full(inputs))
		return false;
	inputs->links++;
	return true;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct input *)a)->path, ((const struct input *)b)->path);
}

bool inputs_sort(struct inputs *inputs)
{
	qsort(inputs->item, inputs->count, sizeof(inputs->item[0]), compare);
	for (size_t i = 1; i < inputs->count; i++)
		if (compare(&inputs->item[i - 1], &inputs->item[i]) == 0)
			return false;
	return true;
}

const struct input *inputs_find(const struct inputs *inputs, const char *path)
{
	const struct input key = {.path = (char *)path};

	return bsearch(&key, inputs->item, inputs->count, sizeof(inputs->item[0]), compare);
}

/* Compares a path with the paths below a directory; 0 when the path lies below it. */
static int compare_below(const char *path, const char *directory, size_t size)
{
	int order = strncmp(path, directory, size);

	return order ? order : (unsigned char)path[size] - '/';
}

bool inputs_below(const struct inputs *inputs, const char *directory)
{
	size_t size = strlen(directory), low = 0, high = inputs->count;

	/* In sorted order the directory itself may be apart from what lies below it: "a", "a-b", "a/b". */
	if (inputs_find(inputs, directory))
		return true;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_below(inputs->item[middle].path, directory, size);

		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}
