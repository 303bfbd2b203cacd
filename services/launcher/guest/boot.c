/*
 * The first program of a guest, in the kernel's initial file system. It loads the kernel modules, mounts the root image and continues as the
 * program /init of the image (init.c). dm-verity checks each block of the image as it is read, unless the kernel parameter "unverified=1" is set.
 */
#include "guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define MODULES "/modules"
#define ROOT "/system"
#define DISK "/dev/vda" /* the same device as in VERITY */
#define VERITY "/verity" /* a table of the device mapper: one line, as dmsetup prints it */
#define VERIFIED "/dev/dm-0"
#define MAPPER "/dev/" DM_DIR "/" DM_CONTROL_NODE

/* Devices appear some time after their drivers. */
static int open_device(const char *path, int flags)
{
	for (int tries = 0;; tries++) {
		int fd = open(path, flags | O_CLOEXEC);

		if (fd >= 0 || tries == DEVICE_TRIES)
			return fd;
		usleep(DEVICE_WAIT_US);
	}
}

static void await_device(const char *path)
{
	int fd = open_device(path, O_RDONLY);

	must(fd, path);
	close(fd);
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static int is_module(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Loads the modules by name: the names begin with numbers, in the order of their dependencies. */
static void load_modules(void)
{
	struct dirent **entries;
	int count = scandir(MODULES, &entries, is_module, by_name);

	must(count, "the modules");
	for (int i = 0; i < count; i++) {
		char path[sizeof(MODULES) + 256];
		int fd;

		snprintf(path, sizeof(path), MODULES "/%s", entries[i]->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		must(fd, path);
		if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
			end(path);
		close(fd);
	}
}

/* A request to the device mapper, with the only target of a table. */
struct mapping {
	struct dm_ioctl head;
	struct dm_target_spec target;
	char parameters[1024];
};

static struct mapping mapping_with(uint32_t flags)
{
	struct mapping mapping = {.head = {.version = {DM_VERSION_MAJOR, 0, 0}, .data_size = sizeof(mapping), .flags = flags}};

	mapping.head.data_start = offsetof(struct mapping, target);
	strcpy(mapping.head.name, "system");
	return mapping;
}

static void map(int mapper, unsigned long request, struct mapping mapping)
{
	must(ioctl(mapper, request, &mapping), "the device mapper");
}

/*
 * Maps VERIFIED to DISK. A block whose hash is not the one in the hash tree restarts the kernel, which ends the guest. See the kernel's
 * Documentation/admin-guide/device-mapper/verity.rst.
 */
static void verify_disk(void)
{
	struct mapping table = mapping_with(DM_READONLY_FLAG);
	int mapper = open_device(MAPPER, O_RDWR);
	unsigned long long start, sectors;
	FILE *file = fopen(VERITY, "re");

	if (!file || fscanf(file, "%llu %llu %15s %1023[^\n]", &start, &sectors, table.target.target_type, table.parameters) != 4)
		end(VERITY);
	fclose(file);
	table.head.target_count = 1;
	table.target.sector_start = start;
	table.target.length = sectors;
	must(mapper, MAPPER);
	map(mapper, DM_DEV_CREATE, mapping_with(DM_READONLY_FLAG));
	map(mapper, DM_TABLE_LOAD, table);
	map(mapper, DM_DEV_SUSPEND, mapping_with(DM_READONLY_FLAG)); /* without DM_SUSPEND_FLAG this request activates the device */
	close(mapper);
}

/* The root image is read-only for good. */
int main(int argc, char **argv)
{
	/* The kernel passes parameters that it does not know to this program, as environment variables. */
	bool is_verified = !getenv("unverified");

	(void)argc;
	if (getpid() != 1)
		return 1;
	mount_new("devtmpfs", "/dev", MS_NOSUID | MS_NOEXEC, "mode=755");
	load_modules();
	await_device(DISK);
	if (is_verified) {
		verify_disk();
		await_device(VERIFIED);
	}
	mkdir(ROOT, 0755);
	must(mount(is_verified ? VERIFIED : DISK, ROOT, "erofs", MS_RDONLY | MS_NODEV, NULL), "the root image");
	must(mount("/dev", ROOT "/dev", NULL, MS_MOVE, NULL), "/dev");
	must(chdir(ROOT), ROOT);
	must(mount(".", "/", NULL, MS_MOVE, NULL), "the root");
	must(chroot("."), "the root");
	must(chdir("/"), "the root");
	execv("/init", argv);
	end("/init");
}
