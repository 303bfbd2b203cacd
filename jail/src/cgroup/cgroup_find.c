/*
 * Finds the mounted hierarchies. v2 is used when it offers memory, pids and cpu;
 * jaild then works below the group that it was given, or started in. On v1 it works
 * below the mount point of each controller.
 */
#include "cgroup/cgroup_tree.h"
#include "lib/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const v1_names[CONTROLLERS] = {"freezer", "memory", "pids", "cpu", "cpuacct"};

bool cgroup_has_word(const char *text, const char *word, char separator)
{
	size_t size = strlen(word);

	for (const char *at = text; at && *at; at = strchr(at, separator), at = at ? at + 1 : NULL) {
		size_t length = strcspn(at, separator == ',' ? ",\n" : " \n");

		if (length == size && strncmp(at, word, size) == 0)
			return true;
	}
	return false;
}

/* Finds the first mount of a file system type, with this super option unless NULL: its root and its mount point. */
static bool find_mount(const char *type, const char *option, char *root, char *point, size_t size)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t capacity = 0;
	bool found = false;

	while (mounts && !found && getline(&line, &capacity, mounts) > 0) {
		char *save = NULL, *field[5] = {0}, *dash = strstr(line, " - "), *rest[3] = {0};

		if (!dash)
			continue;
		*dash = '\0';
		for (int i = 0; i < 5; i++)
			field[i] = strtok_r(i ? NULL : line, " ", &save);
		for (int i = 0; i < 3; i++)
			rest[i] = strtok_r(i ? NULL : dash + 3, " \n", &save);
		if (!field[4] || !rest[2] || strcmp(rest[0], type) != 0)
			continue;
		if (option && !cgroup_has_word(rest[2], option, ','))
			continue;
		snprintf(root, size, "%s", field[3]);
		snprintf(point, size, "%s", field[4]);
		found = true;
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

/* The path of this process's group on v2, as /proc shows it. */
static bool own_v2_group(char *path, size_t size)
{
	FILE *groups = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];
	bool found = false;

	while (groups && !found && fgets(line, sizeof(line), groups)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::", 3) != 0)
			continue;
		snprintf(path, size, "%s", line + 3);
		found = true;
	}
	if (groups)
		fclose(groups);
	return found;
}

bool cgroup_find_own(char *base, size_t size)
{
	char root[PATH_MAX], point[PATH_MAX], group[PATH_MAX];
	const char *below = group;

	if (!find_mount("cgroup2", NULL, root, point, PATH_MAX) || !own_v2_group(group, PATH_MAX))
		return false;
	if (strcmp(root, "/") != 0 && strncmp(group, root, strlen(root)) == 0)
		below = group + strlen(root);
	if (strcmp(below, "/") == 0)
		below = "";
	return (size_t)snprintf(base, size, "%s%s", point, below) < size;
}

bool cgroup_find_v2(const char *given, char *base, size_t size)
{
	char path[PATH_MAX], controllers[1024];

	if (given ? (size_t)snprintf(base, size, "%s", given) >= size : !cgroup_find_own(base, size))
		return false;
	snprintf(path, sizeof(path), "%.3000s/cgroup.controllers", base);
	if (read_file_at(AT_FDCWD, path, controllers, sizeof(controllers)) < 0)
		return false;
	return cgroup_has_word(controllers, "memory", ' ') && cgroup_has_word(controllers, "pids", ' ') &&
	       cgroup_has_word(controllers, "cpu", ' ');
}

bool cgroup_find_v1(enum controller controller, char *base, size_t size)
{
	char root[PATH_MAX], point[PATH_MAX];

	if (!find_mount("cgroup", v1_names[controller], root, point, PATH_MAX))
		return false;
	return (size_t)snprintf(base, size, "%s", point) < size;
}
