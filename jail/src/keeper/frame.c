#include "keeper/frame.h"

#include "master/options.h"

#include <string.h>

static uint16_t get_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get_u64(const uint8_t *at)
{
	return (uint64_t)get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

ssize_t frame_decode(const uint8_t *buffer, size_t size, struct frame *frame)
{
	uint32_t length;

	if (size < FRAME_HEADER)
		return 0;
	length = get_u32(buffer);
	if (length < 1 || length > FRAME_MAX)
		return -1;
	if (size - FRAME_HEADER < length)
		return 0;
	frame->tag = buffer[FRAME_HEADER];
	frame->payload = buffer + FRAME_HEADER + 1;
	frame->size = length - 1;
	return (ssize_t)(FRAME_HEADER + length);
}

bool decode_limits(const struct frame *frame, struct limits *limits)
{
	uint64_t word[10];

	if (frame->size != sizeof(word))
		return false;
	for (size_t i = 0; i < 10; i++)
		word[i] = get_u64(frame->payload + 8 * i);
	*limits = (struct limits){
		.wall_ms = word[0], .cpu_ms = word[1], .memory_bytes = word[2], .pids = word[3],
		.open_files = word[4], .file_size_bytes = word[5], .stdout_cap = word[6],
		.stderr_cap = word[7], .kill_factor = word[8],
	};
	/* The ceilings keep every sum and product of limits far below 2^63. */
	return limits->wall_ms >= 1 && limits->wall_ms <= 86400000 && limits->cpu_ms <= 864000000 &&
	       limits->memory_bytes >= (1u << 20) && limits->memory_bytes <= UINT64_C(1) << 42 &&
	       limits->pids >= 1 && limits->pids <= 32768 && limits->open_files >= 16 &&
	       limits->open_files <= 1048576 && limits->file_size_bytes <= UINT64_C(1) << 42 &&
	       limits->stdout_cap <= STREAM_BYTES_MAX && limits->stderr_cap <= STREAM_BYTES_MAX &&
	       limits->kill_factor <= 1048576 && word[9] == 0;
}

bool decode_file(const struct frame *frame, struct file_header *file)
{
	if (frame->size < 16 || frame->payload[4] > 1)
		return false;
	file->input = get_u32(frame->payload);
	file->read_only = frame->payload[4] == 1;
	file->mode = get_u16(frame->payload + 5);
	file->size = get_u64(frame->payload + 7);
	file->path = (const char *)frame->payload + 15;
	file->path_size = frame->size - 15;
	return file->input != NO_INPUT && file->mode <= MODE_MAX && !(file->read_only && (file->mode & 0222)) &&
	       path_is_valid(file->path, file->path_size);
}

bool decode_directory(const struct frame *frame, struct directory_header *directory)
{
	if (frame->size < 7)
		return false;
	directory->input = get_u32(frame->payload);
	directory->mode = get_u16(frame->payload + 4);
	directory->path = (const char *)frame->payload + 6;
	directory->path_size = frame->size - 6;
	return directory->input != NO_INPUT && directory->mode <= MODE_MAX &&
	       path_is_valid(directory->path, directory->path_size);
}

bool decode_link(const struct frame *frame, struct link_header *link)
{
	const uint8_t *end = memchr(frame->payload, '\0', frame->size);

	if (!end)
		return false;
	link->path = (const char *)frame->payload;
	link->path_size = (size_t)(end - frame->payload);
	link->target = link->path + link->path_size + 1;
	link->target_size = frame->size - link->path_size - 1;
	return link->target_size >= 1 && link->target_size <= TARGET_BYTES_MAX && !memchr(link->target, '\0', link->target_size) &&
	       path_is_valid(link->path, link->path_size);
}

bool decode_u64(const struct frame *frame, uint64_t *value)
{
	if (frame->size != 8)
		return false;
	*value = get_u64(frame->payload);
	return true;
}

bool decode_u32(const struct frame *frame, uint32_t *value)
{
	if (frame->size != 4)
		return false;
	*value = get_u32(frame->payload);
	return true;
}

bool path_is_valid(const char *path, size_t size)
{
	size_t start = 0, depth = 0;

	if (size < 1 || size > PATH_BYTES_MAX || memchr(path, '\0', size))
		return false;
	for (size_t i = 0; i <= size; i++) {
		size_t length = i - start;

		if (i < size && path[i] != '/')
			continue;
		if (length < 1 || length > NAME_BYTES_MAX || ++depth > PATH_DEPTH_MAX)
			return false;
		if (path[start] == '.' && (length == 1 || (length == 2 && path[start + 1] == '.')))
			return false;
		start = i + 1;
	}
	return true;
}

uint8_t *put_u8(uint8_t *at, uint8_t value)
{
	*at = value;
	return at + 1;
}

uint8_t *put_u16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
	return at + 2;
}

uint8_t *put_u32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
	return at + 4;
}

uint8_t *put_u64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (8 * i));
	return at + 8;
}

uint8_t *put_bytes(uint8_t *at, const void *data, size_t size)
{
	memcpy(at, data, size);
	return at + size;
}
