/* The frames of the socket protocol: any bytes are decoded by every decoder. */
#include "fuzz.h"
#include "keeper/frame.h"

#include <string.h>

static void expect_path(const char *path, size_t size)
{
	char whole[PATH_BYTES_MAX + 3];

	PROMISE(size > 0 && size <= PATH_BYTES_MAX && !memchr(path, '\0', size));
	snprintf(whole, sizeof(whole), "/%.*s/", (int)size, path);
	PROMISE(!strstr(whole, "//") && !strstr(whole, "/./") && !strstr(whole, "/../"));
}

static void decode(const struct frame *frame)
{
	struct directory_header directory;
	struct file_header file;
	struct link_header link;
	struct limits limits;
	uint64_t large;
	uint32_t small;

	if (decode_limits(frame, &limits)) {
		/* What is added and multiplied later stays far from overflowing. */
		PROMISE(limits.wall_ms * 1000 < UINT64_C(1) << 62 && limits.cpu_ms * 1000 < UINT64_C(1) << 62);
		PROMISE(limits.stdout_cap * (limits.kill_factor + 1) < UINT64_C(1) << 62);
		PROMISE(limits.memory_bytes >= 1 && limits.memory_bytes < UINT64_C(1) << 62);
	}
	if (decode_file(frame, &file)) {
		PROMISE(file.input != NO_INPUT && file.path_size < frame->size);
		PROMISE((file.mode & (file.read_only ? 07222 : 07000)) == 0);
		expect_path(file.path, file.path_size);
	}
	if (decode_directory(frame, &directory)) {
		PROMISE(directory.input != NO_INPUT && directory.path_size < frame->size);
		PROMISE((directory.mode & 07000) == 0);
		expect_path(directory.path, directory.path_size);
	}
	if (decode_link(frame, &link)) {
		PROMISE(link.path_size + 1 + link.target_size == frame->size);
		PROMISE(link.target_size >= 1 && link.target_size <= TARGET_BYTES_MAX);
		PROMISE(!memchr(link.target, '\0', link.target_size));
		expect_path(link.path, link.path_size);
	}
	PROMISE(decode_u64(frame, &large) == (frame->size == 8));
	PROMISE(decode_u32(frame, &small) == (frame->size == 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame frame = {.payload = data, .size = size};

	decode(&frame);
	while (size > 0) {
		ssize_t used = frame_decode(data, size, &frame);

		if (used <= 0)
			break;
		PROMISE((size_t)used <= size && frame.payload + frame.size == data + used);
		decode(&frame);
		data += used;
		size -= (size_t)used;
	}
	return 0;
}
