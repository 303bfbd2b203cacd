/*
 * For LD_PRELOAD into jaild, in tests of its harvest: every look at a name and every opening beneath a directory is
 * followed or preceded by a pause, so that what lies between two of them is long enough for somebody to swap files.
 * HARVEST_DELAY_US says how long. With HARVEST_WEAK=1 the restrictions of openat2 are taken away: what an attacker
 * would reach without them. Programs in jails do not inherit it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void delay(void)
{
	const char *us = getenv("HARVEST_DELAY_US");
	int saved = errno;

	if (us)
		usleep((useconds_t)atoi(us));
	errno = saved;
}

int fstatat64(int directory, const char *name, struct stat64 *st, int flags)
{
	int (*real)(int, const char *, struct stat64 *, int) = dlsym(RTLD_NEXT, "fstatat64");
	int result = real(directory, name, st, flags);

	delay();
	return result;
}

long syscall(long number, ...)
{
	long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	struct open_how weak;
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_openat2) {
		delay();
		memcpy(&weak, (void *)a[2], sizeof(weak));
		/* As the harvest opens; the start's look at openat2 itself finds it whole. */
		if (getenv("HARVEST_WEAK") && (weak.flags & O_NOFOLLOW)) {
			weak.resolve = 0;
			weak.flags &= ~(__u64)O_NOFOLLOW;
			a[2] = (long)&weak;
		}
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
