/*
 * The first program of a guest that somebody has taken over: root, with every capability, and none of ours. Says on the console what it
 * finds, attacks everything that it can reach, and brings its kernel down in the end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GARBAGE_BYTES (1 << 20)
#define PORTS_WRITTEN 20000
#define MMIO_BASE 0xfeb00000UL /* of virtio devices on this machine */
#define MMIO_BYTES 0x3000
#define MMIO_WRITES 20000

static void load_modules(void)
{
	struct dirent **entries;
	int count = scandir("/modules", &entries, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		char path[300];
		int fd;

		snprintf(path, sizeof(path), "/modules/%s", entries[i]->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			syscall(SYS_finit_module, fd, "", 0);
	}
}

static void list(const char *what, const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort);

	printf("%s:", what);
	for (int i = 0; i < count; i++)
		if (entries[i]->d_name[0] != '.')
			printf(" %s", entries[i]->d_name);
	printf("\n");
}

/* Numbers of virtio's kinds of devices. */
static void list_kinds(void)
{
	struct dirent **entries;
	int count = scandir("/sys/bus/virtio/devices", &entries, NULL, alphasort);

	printf("kinds:");
	for (int i = 0; i < count; i++) {
		char path[300], text[32] = "";
		int fd;

		if (entries[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/bus/virtio/devices/%s/device", entries[i]->d_name);
		fd = open(path, O_RDONLY);
		if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
			printf(" %lu", strtoul(text, NULL, 16));
		close(fd);
	}
	printf("\n");
}

static void write_disk(void)
{
	char sector[512] = "taken over";
	int fd = open("/dev/vda", O_RDWR);

	if (fd < 0)
		printf("disk: %s\n", strerror(errno));
	else
		printf("disk: %s\n", pwrite(fd, sector, sizeof(sector), 0) == sizeof(sector) && fsync(fd) == 0 ? "written" : "not written");
}

static void fill(unsigned char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = rand();
}

/* The host gives up on this guest at some time. */
static void write_wires(void)
{
	static unsigned char garbage[GARBAGE_BYTES];
	int written = 0;

	fill(garbage, sizeof(garbage));
	for (int device = 0; device < 8; device++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "/dev/vport%dp1", device);
		fd = open(path, O_RDWR | O_NONBLOCK);
		if (fd < 0)
			continue;
		for (size_t at = 0; at < sizeof(garbage); at += 4096)
			if (write(fd, garbage + at, 4096) < 0 && errno != EAGAIN)
				break;
		written++;
	}
	printf("wires: %d\n", written);
}

/* A kernel keeps to itself what its drivers have. */
static void take_from_drivers(void)
{
	struct dirent **entries;
	int count = scandir("/sys/bus/platform/drivers/virtio-mmio", &entries, NULL, alphasort);
	int fd = open("/sys/bus/platform/drivers/virtio-mmio/unbind", O_WRONLY);

	for (int i = 0; i < count; i++)
		if (strpbrk(entries[i]->d_name, ".:") && entries[i]->d_name[0] != '.')
			if (write(fd, entries[i]->d_name, strlen(entries[i]->d_name)) < 0)
				printf("unbind: %s\n", strerror(errno));
}

static void poke_registers(void)
{
	volatile uint32_t *registers;
	int fd;

	take_from_drivers();
	fd = open("/dev/mem", O_RDWR | O_SYNC);
	registers = fd < 0 ? MAP_FAILED : mmap(NULL, MMIO_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, MMIO_BASE);

	if (registers == MAP_FAILED) {
		printf("registers: %s\n", strerror(errno));
		return;
	}
	printf("registers: reached\n");
	for (int i = 0; i < MMIO_WRITES; i++)
		registers[rand() % (MMIO_BYTES / 4)] = rand();
}

static void poke_ports(void)
{
	if (iopl(3) < 0) {
		printf("iopl: %s\n", strerror(errno));
		return;
	}
	printf("iopl: allowed\n");
	for (int i = 0; i < PORTS_WRITTEN; i++) {
		unsigned port = rand() & 0xffff;

		/* Its own console. */
		if (port < 0x3f8 || port > 0x3ff)
			outb(rand(), port);
	}
}

int main(void)
{
	int fd;

	srand(1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	load_modules();
	usleep(2000000);
	printf("user: %d\n", getuid());
	list("network", "/sys/class/net");
	list("disks", "/sys/block");
	list("pci", "/sys/bus/pci/devices");
	list_kinds();
	printf("vsock: %s\n", socket(AF_VSOCK, SOCK_STREAM, 0) < 0 ? strerror(errno) : "there");
	write_disk();
	if (strcmp(ATTACK, "wires") == 0)
		write_wires();
	else if (strcmp(ATTACK, "registers") == 0)
		poke_registers();
	else
		poke_ports();
	printf("attacked: %s\n", ATTACK);
	fd = open("/proc/sysrq-trigger", O_WRONLY);
	if (fd >= 0 && write(fd, "c", 1) < 0)
		printf("no crash\n");
	for (;;)
		pause();
}
