/* Shared by both programs of a guest: how they end the guest after a failure, and how they mount. */
#ifndef SVC_GUEST_H
#define SVC_GUEST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longest wait for a device, which appears some time after its driver: number of tries, and microseconds between them. */
#define DEVICE_TRIES 2000
#define DEVICE_WAIT_US 2000

static inline _Noreturn void end(const char *what)
{
	fprintf(stderr, "guest: %s: %s\n", what, errno ? strerror(errno) : "ended");
	sync();
	reboot(RB_AUTOBOOT);
	_exit(1);
}

/* Any failure ends the guest: it never continues with a part missing. */
static inline void must(int result, const char *what)
{
	if (result < 0)
		end(what);
}

static inline void mount_new(const char *type, const char *target, unsigned long flags, const char *data)
{
	must(mkdir(target, 0755) < 0 && errno != EEXIST && errno != EROFS ? -1 : 0, target);
	must(mount(type, target, type, flags, data), target);
}

#endif
