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
static int enter_directory(const struct stage *stage, int parent, const char *name)
{
	bool made = mkdirat(parent, name, 0755) == 0;
	int fd = -1, saved;

	if (made || errno == EEXIST)
		fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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
		directory = enter_directory(stage, directory, name);
		start = i + 1;
	}
	memcpy(name, path + start, size - start);
	name[size - start] = '\0';
	return directory;
}

int stage_directory(const struct stage *stage, const struct directory_header *directory)
{
	char name[NAME_BYTES_MAX + 1];
	int parent = open_parent(stage, directory->path, directory->path_size, name), fd;

	if (parent < 0)
		return -1;
	fd = enter_directory(stage, parent, name);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

int stage_file(const struct stage *stage, const struct file_header *file)
{
	static const mode_t modes[] = {[FILE_ORDINARY] = 0644, [FILE_READ_ONLY] = 0444, [FILE_EXECUTABLE] = 0755};
	char name[NAME_BYTES_MAX + 1];
	int parent = open_parent(stage, file->path, file->path_size, name), fd, saved;

	if (parent < 0)
		return -1;
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	saved = errno;
	close(parent);
	errno = saved;
	if (fd < 0)
		return -1;
	if (fchmod(fd, modes[file->kind]) < 0 ||
	    (file->kind != FILE_READ_ONLY && fchown(fd, stage->uid, stage->gid) < 0)) {
		saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}

struct input *inputs_add(struct inputs *inputs, uint32_t index, bool directory, const char *path,
			 size_t path_size, uint64_t size)
{
	struct input *input = &inputs->item[inputs->count];

	if (inputs->count == INPUTS_MAX) {
		errno = E2BIG;
		return NULL;
	}
	*input = (struct input){
		.index = index, .directory = directory, .path = strndup(path, path_size), .size = size};
	if (!input->path)
		return NULL;
	inputs->count++;
	return input;
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

bool inputs_below(const struct inputs *inputs, const char *directory)
{
	size_t size = strlen(directory);

	for (size_t i = 0; i < inputs->count; i++) {
		const char *path = inputs->item[i].path;

		if (strncmp(path, directory, size) == 0 && (path[size] == '/' || path[size] == '\0'))
			return true;
	}
	return false;
}
