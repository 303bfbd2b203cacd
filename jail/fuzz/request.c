/* A job as a keeper receives it: any bytes on the socket, a real workspace behind it. */
#include "keeper/request.h"

#include "fuzz.h"
#include "lib/sys.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKSPACE_BYTES (1u << 20)

static struct request request;

static void expect_input(int workspace, const struct input *input)
{
	int fd = sys_openat2(workspace, input->path, O_PATH | O_NOFOLLOW,
			     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	struct stat st;

	PROMISE(fd >= 0 && fstat(fd, &st) == 0);
	PROMISE(input->directory ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
	PROMISE(input->directory || (uint64_t)st.st_size == input->size);
	PROMISE((st.st_mode & 07000) == 0);
	close(fd);
}

/* What the program's process will read must be what was counted. */
static void expect_job(int job)
{
	char *text = malloc(request.job_size + 1);
	uint32_t argc = 0, envc = 0;

	PROMISE(text && pread(job, text, request.job_size + 1, 0) == (ssize_t)request.job_size);
	PROMISE(request.job_size > 0 && text[request.job_size - 1] == '\0');
	for (char *at = text; at < text + request.job_size; at += strlen(at) + 1) {
		PROMISE(*at == 'A' || *at == 'E');
		PROMISE(*at != 'A' || argc > 0 || at[1] == '/');
		(*at == 'A' ? &argc : &envc)[0]++;
		at++;
	}
	PROMISE(argc == request.argc && envc == request.envc && argc > 0);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct options options = {
		.workspace_bytes = WORKSPACE_BYTES, .stage_ms = 1000, .stream_bytes = STREAM_BYTES_MAX};
	static int playground = -1;
	struct jail jail = {.uid = getuid(), .gid = getgid()};
	struct conn conn;
	int ends[2], lowest;

	if (playground < 0)
		playground = playground_open();
	lowest = dup(playground);
	pair_open(ends);
	jail.workspace = openat(playground, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	jail.job = memfd_create("job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	jail.stdin_data = memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	PROMISE(jail.workspace >= 0 && jail.job >= 0 && jail.stdin_data >= 0);
	PROMISE(send(ends[0], data, size, 0) == (ssize_t)size);
	close(ends[0]);
	conn_begin(&conn, ends[1], 0);
	if (request_receive(&request, &conn, &jail, &options)) {
		PROMISE(request.has_limits && request.argc <= ARGUMENTS_MAX);
		PROMISE(request.inputs.count + request.inputs.links <= INPUTS_MAX);
		expect_job(jail.job);
		for (size_t i = 0; i < request.inputs.count; i++)
			expect_input(jail.workspace, &request.inputs.item[i]);
	}
	for (size_t i = 0; i < request.inputs.count; i++)
		free(request.inputs.item[i].path);
	playground_clear(playground);
	/* A keeper that refuses a job exits with the file open that was being written. */
	PROMISE(lowest >= 0 && sys_close_range((unsigned)lowest, (unsigned)lowest + 16, 0) == 0);
	return 0;
}
