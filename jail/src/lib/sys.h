/*
 * Thin wrappers around system calls that some supported C libraries lack.
 * Same contract as every system call: -1 and errno on failure.
 */
#ifndef JAIL_SYS_H
#define JAIL_SYS_H

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif

static inline int sys_fsopen(const char *type)
{
	return (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

static inline int sys_fsconfig(int fs, unsigned command, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fs, command, key, value, 0);
}

static inline int sys_fsmount(int fs, unsigned attributes)
{
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
}

static inline int sys_open_tree(int dir, const char *path)
{
	return (int)syscall(SYS_open_tree, dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
}

static inline int sys_move_mount(int mount, const char *target)
{
	return (int)syscall(SYS_move_mount, mount, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int sys_mount_setattr(int dir, const char *path, unsigned flags,
				    struct mount_attr *attributes)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, attributes, sizeof(*attributes));
}

static inline int sys_mount(const char *source, const char *target, const char *type,
			    unsigned long flags, const char *data)
{
	return (int)syscall(SYS_mount, source, target, type, flags, data);
}

static inline int sys_umount(const char *target, int flags)
{
	return (int)syscall(SYS_umount2, target, flags);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = flags, .resolve = resolve};
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static inline int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int sys_pidfd_send_signal(int pidfd, int signal)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

static inline pid_t sys_clone3(struct clone_args *args)
{
	return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}

#endif
