#include "cgroup/freezer.h"

#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SPIN_US 100	  /* polls without sleep: a few sleeping processes freeze at once */
#define SLEEP_NS 50000
#define GROUP_MAX 255 /* bytes of its name */

const char *freezer_control_file(int version)
{
	return version == 2 ? "cgroup.freeze" : "freezer.state";
}

const char *freezer_state_file(int version)
{
	return version == 2 ? "cgroup.events" : "freezer.state";
}

bool freezer_text_is_frozen(int version, const char *text)
{
	/* On v1 the state is FREEZING until the last process is frozen. */
	return version == 2 ? keyed_number(text, "frozen") == 1 : strcmp(text, "FROZEN\n") == 0;
}

static int open_file(int directory, const char *group, const char *file, int flags)
{
	char path[GROUP_MAX + 32];

	snprintf(path, sizeof(path), "%.*s/%s", GROUP_MAX, group, file);
	return openat(directory, path, flags | O_CLOEXEC);
}

int freezer_open(struct freezer *f, int version, int directory, const char *group)
{
	*f = (struct freezer){.version = version, .control = -1, .state = -1};
	f->control = open_file(directory, group, freezer_control_file(version), O_WRONLY);
	f->state = f->control < 0 ? -1 : open_file(directory, group, freezer_state_file(version), O_RDONLY);
	return f->state < 0 ? -1 : 0;
}

void freezer_close(struct freezer *f)
{
	if (f->control >= 0)
		close(f->control);
	if (f->state >= 0)
		close(f->state);
	f->control = f->state = -1;
}

static int write_control(const struct freezer *f, const char *v1, const char *v2)
{
	const char *text = f->version == 2 ? v2 : v1;
	size_t size = strlen(text);

	return pwrite(f->control, text, size, 0) == (ssize_t)size ? 0 : -1;
}

void freezer_thaw_group(int version, int directory, const char *group)
{
	struct freezer f = {.version = version, .state = -1, .frozen = true};

	f.control = open_file(directory, group, freezer_control_file(version), O_WRONLY);
	if (f.control >= 0)
		(void)freezer_thaw(&f);
	freezer_close(&f);
}

int freezer_freeze(struct freezer *f, uint64_t within_us)
{
	const struct timespec rest = {.tv_nsec = SLEEP_NS};
	uint64_t started = monotonic_us(), now;
	char text[256];

	if (f->version == 0) {
		errno = ENOTSUP;
		return -1;
	}
	f->frozen = true;
	if (write_control(f, "FROZEN", "1") < 0)
		goto failed;
	for (;;) {
		if (read_fd_text(f->state, text, sizeof(text)) <= 0)
			goto failed;
		if (freezer_text_is_frozen(f->version, text))
			return 0;
		now = monotonic_us();
		if (now - started > within_us)
			break;
		if (now - started < SPIN_US) {
			sched_yield();
			continue;
		}
		(void)nanosleep(&rest, NULL);
		/* v1 signals every task once. A task that has since begun to wait for its vforked child needs another signal. */
		if (write_control(f, "FROZEN", "1") < 0)
			goto failed;
	}
	errno = ETIMEDOUT;
failed:
	freezer_thaw(f);
	return -1;
}

int freezer_thaw(struct freezer *f)
{
	if (!f->frozen)
		return 0;
	if (write_control(f, "THAWED", "0") < 0)
		return -1;
	f->frozen = false;
	return 0;
}
