#include "init/network.h"

#include "lib/sys.h"
#include "lib/util.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define HELPER_STACK 65536 /* for the process that makes a namespace */
#define NO_SOCKETS "sockets: used 0\n"

struct creation {
	int userns, namespace, error;
};

/* Entries that programs may read: their content belongs to the namespace alone. */
static const char *const open_entries[] = {"dev", "if_inet6", "route", "tcp", "tcp6", "udp", "udp6", "unix"};

/* Fingerprint of the names in /proc/net of jaild's first namespace. When it differs, a run hides all entries again. */
static uint64_t cached_names;

static bool is_open(const char *name)
{
	for (size_t i = 0; i < COUNT(open_entries); i++)
		if (strcmp(name, open_entries[i]) == 0)
			return true;
	return name[0] == '.';
}

int network_hide(int net)
{
	DIR *directory = net < 0 ? NULL : fdopendir(net);
	struct dirent *entry;
	int result = -1, saved;

	if (!directory) {
		saved = errno;
		if (net >= 0)
			close(net);
		errno = saved;
		return -1;
	}
	while (errno = 0, (entry = readdir(directory)))
		if (!is_open(entry->d_name) && fchmodat(net, entry->d_name, 0, 0) < 0 && errno != ENOENT)
			break;
	if (!entry && errno == 0)
		result = 0;
	saved = errno;
	closedir(directory);
	errno = saved;
	return result;
}

/* Uses the names only: a stat of each entry would be the most expensive part of the start. */
int network_names(int net, uint64_t *names)
{
	_Alignas(struct dirent64) char entries[8192];
	ssize_t size;

	*names = 0;
	while ((size = getdents64(net, entries, sizeof(entries))) > 0)
		for (ssize_t at = 0; at < size;) {
			const struct dirent64 *entry = (const void *)(entries + at);
			uint64_t name = 1;

			for (const char *c = entry->d_name; *c; c++)
				name = (name ^ (unsigned char)*c) * UINT64_C(0x9e3779b97f4a7c15);
			*names += name;
			at += entry->d_reclen;
		}
	return size < 0 ? -1 : 0;
}

/* Caches first: an entry that appears in between differs from the cached names and is hidden by the next run. */
static int cache_and_hide(const char *path)
{
	int net = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (net < 0)
		return -1;
	if ((cached_names == 0 && network_names(net, &cached_names) < 0) || lseek(net, 0, SEEK_SET) < 0) {
		int saved = errno;

		close(net);
		errno = saved;
		return -1;
	}
	return network_hide(net);
}

/* Runs in a helper that shares the master's memory and descriptors. The master waits until it ends. */
static int make_namespace(void *argument)
{
	struct creation *creation = argument;

	if (setns(creation->userns, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNET) < 0 ||
	    (creation->namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) < 0 || cache_and_hide("/proc/self/net") < 0)
		creation->error = errno;
	_exit(0);
}

int network_make(int userns)
{
	static _Alignas(16) char stack[HELPER_STACK];
	struct creation creation = {.userns = userns, .namespace = -1};
	pid_t pid = clone(make_namespace, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &creation);

	if (pid < 0)
		return -1;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (creation.error == 0)
		return creation.namespace;
	if (creation.namespace >= 0)
		close(creation.namespace);
	errno = creation.error;
	return -1;
}

bool network_text_is_empty(const char *text)
{
	return strncmp(text, NO_SOCKETS, strlen(NO_SOCKETS)) == 0;
}

/*
 * The kernel counts a socket from its creation until its memory is freed: unnamed ones, ones in unread messages, and the peer
 * of a connection to the tools included. All processes of earlier runs are dead, so the number can only fall.
 */
static bool is_empty(int host_proc)
{
	char text[512];

	return read_file_at(host_proc, "self/net/sockstat", text, sizeof(text)) > 0 && network_text_is_empty(text);
}

/* A kernel module may have added entries since the namespace was made. The keeper ends if this fails. */
static int hide_new_entries(int host_proc)
{
	int net = openat(host_proc, "self/net", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t names;

	if (net < 0 || network_names(net, &names) < 0)
		return -1;
	if (names == cached_names)
		return close(net);
	return lseek(net, 0, SEEK_SET) < 0 ? -1 : network_hide(net);
}

int network_enter(int network, int host_proc)
{
	if (network >= 0 && setns(network, CLONE_NEWNET) == 0 && is_empty(host_proc))
		return hide_new_entries(host_proc);
	cached_names = 0;
	return unshare(CLONE_NEWNET) < 0 ? -1 : hide_new_entries(host_proc);
}
