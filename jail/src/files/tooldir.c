#include "files/tooldir.h"

#include "lib/sys.h"
#include "lib/util.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SLOT_MODE 0711	/* a program may open a known name but cannot list the directory */
#define ENTRIES_MAX 256 /* removed in one call */

static const struct options *settings;
static int base = -1;

static bool tooldir_enabled(void)
{
	return base >= 0;
}

static int open_slot(unsigned slot)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", slot);
	return openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void make_slot(unsigned slot)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%u", slot);
	if (mkdirat(base, name, 0700) < 0 && errno != EEXIST)
		fatal("cannot make the tool directory of slot %u", slot);
	fd = open_slot(slot);
	if (fd < 0 || fchown(fd, settings->socket_uid, settings->socket_gid) < 0 || fchmod(fd, SLOT_MODE) < 0)
		fatal("cannot set up the tool directory of slot %u", slot);
	close(fd);
}

void tooldir_make(const struct options *options)
{
	const char *path = options->tool_directory;
	struct stat st;

	if (!path)
		return;
	settings = options;
	if (mkdir(path, 0711) < 0 && errno != EEXIST)
		fatal("cannot make the tool directory %s", path);
	base = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (base < 0 || fstat(base, &st) < 0) {
		int saved = errno;

		(void)rmdir(path);
		errno = saved;
		fatal("cannot open the tool directory %s", path);
	}
	if (st.st_uid != 0 || (st.st_mode & 022) != 0) {
		errno = EPERM;
		fatal("the tool directory %s must be owned and writable by root alone", path);
	}
	for (unsigned slot = 0; slot < options->slots; slot++)
		make_slot(slot);
}

bool tooldir_clean(unsigned slot)
{
	unsigned budget = ENTRIES_MAX;
	struct dirent *entry;
	struct stat st;
	bool empty = true;
	DIR *directory;
	int fd;

	if (!tooldir_enabled())
		return true;
	fd = open_slot(slot);
	directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (errno = 0, (entry = readdir(directory))) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (budget-- == 0 ||
		    (unlinkat(fd, name, 0) < 0 && errno != ENOENT && unlinkat(fd, name, AT_REMOVEDIR) < 0)) {
			empty = false;
			break;
		}
	}
	empty = empty && errno == 0;
	/* The owner may have changed the mode, which the jail would see. It is set only if it differs, to save a disk write. */
	if (fstat(fd, &st) < 0 || ((st.st_mode & 07777) != SLOT_MODE && fchmod(fd, SLOT_MODE) < 0))
		empty = false;
	closedir(directory);
	return empty;
}

void tooldir_remove(void)
{
	char name[16];

	for (unsigned slot = 0; tooldir_enabled() && slot < settings->slots; slot++) {
		snprintf(name, sizeof(name), "%u", slot);
		if (!tooldir_clean(slot) || unlinkat(base, name, AT_REMOVEDIR) < 0)
			log_line(LOG_ERROR, (int)slot, errno, "a tool directory cannot be removed");
	}
	/* A directory that existed before may contain other files. */
	if (tooldir_enabled() && rmdir(settings->tool_directory) < 0 && errno != ENOTEMPTY)
		log_line(LOG_ERROR, -1, errno, "the tool directory cannot be removed");
	tooldir_forget();
}

int tooldir_mount(const struct options *options)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
		.propagation = MS_PRIVATE,
	};
	int mount = sys_open_tree(AT_FDCWD, options->tool_directory);

	if (mount < 0 || sys_mount_setattr(mount, "", AT_EMPTY_PATH, &attributes) < 0)
		return -1;
	return mount;
}

void tooldir_forget(void)
{
	if (base >= 0)
		close(base);
	base = -1;
}
