/*
 * The frames of jaild's socket protocol, without any I/O: a u32 length, a tag and a payload; all integers are little
 * endian. The bytes come from the other end of the socket and are not trusted: every decoder returns false for a payload
 * that is not exactly what its tag requires.
 *
 * Frames of a job, in any order before R. The first A is the program:
 *   A argument   E variable, name=value   L limits, ten u64
 *   F file: u32 input, u8 read-only, u16 mode, u64 size, path; its bytes follow in B
 *   D directory: u32 input, u16 mode, path   Y symlink: path, NUL, target
 *   I standard input: u64 size; its bytes follow in B   B bytes
 *   V requests a whole listing   O requests output as it comes   R run
 * Before the job, W requests a copy of a zygote (its name). S instead of R pre-starts a command of A, E and L. The answer
 * to both is w.
 *
 * The first frame of a connection is h, from jaild: u32 version, u32 slot, u32 silent ms, u32 failing ms (pulse.h).
 *
 * The listing of the workspace follows the result x and ends with z (u32 flags, u64 unlisted). It is sorted by path:
 *   f file: u32 number, u8 state, u32 input, u64 size, u16 mode, path   o omitted: u8 reason, path
 *   m missing input: u32 input   k input directory that still exists: u32 input   d empty directory: path
 *   A whole listing has v instead of k and d, for every directory: u32 input, u16 mode, u8 empty, path
 *   and also y symlink: path, NUL, target
 * Then G (u32 number) fetches a file. The answer is g (u32 number, u64 size) with its bytes in b, or n (u32 number).
 *
 * `input` is the client's number of an input, or NO_INPUT. A mode has permission bits only.
 */
#ifndef JAIL_FRAME_H
#define JAIL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROTOCOL_VERSION 2
#define FRAME_HEADER 4
#define FRAME_MAX ((1u << 20) + 64) /* tag and payload */
#define CHUNK_MAX (1u << 20)	    /* payload of a data frame that jaild sends */
#define PATH_BYTES_MAX 4096
#define PATH_DEPTH_MAX 64
#define NAME_BYTES_MAX 255
#define TARGET_BYTES_MAX 4095 /* of a symlink: the kernel's limit */
#define MODE_MAX 0777
#define NO_INPUT UINT32_MAX

struct frame {
	uint8_t tag;
	const uint8_t *payload;
	size_t size;
};

struct limits {
	uint64_t wall_ms, cpu_ms, memory_bytes, pids, open_files, file_size_bytes;
	uint64_t stdout_cap, stderr_cap, kill_factor;
};

struct file_header {
	uint32_t input;
	bool read_only; /* the file does not belong to the run's user, and nobody may write it */
	mode_t mode;
	uint64_t size;
	const char *path;
	size_t path_size;
};

struct directory_header {
	uint32_t input;
	mode_t mode;
	const char *path;
	size_t path_size;
};

struct link_header {
	const char *path, *target; /* the target is any text without NUL; jaild never resolves it */
	size_t path_size, target_size;
};

/* Bytes taken by the first frame of the buffer, 0 when it is not complete, -1 when it is invalid. */
ssize_t frame_decode(const uint8_t *buffer, size_t size, struct frame *frame);

bool decode_limits(const struct frame *frame, struct limits *limits);
bool decode_file(const struct frame *frame, struct file_header *file);
bool decode_directory(const struct frame *frame, struct directory_header *directory);
bool decode_link(const struct frame *frame, struct link_header *link);
bool decode_u64(const struct frame *frame, uint64_t *value);
bool decode_u32(const struct frame *frame, uint32_t *value);

/* A relative path of 1..PATH_DEPTH_MAX ordinary components, without NUL. */
bool path_is_valid(const char *path, size_t size);

/* Little endian encoders; each returns the position after what it wrote. */
uint8_t *put_u8(uint8_t *at, uint8_t value);
uint8_t *put_u16(uint8_t *at, uint16_t value);
uint8_t *put_u32(uint8_t *at, uint32_t value);
uint8_t *put_u64(uint8_t *at, uint64_t value);
uint8_t *put_bytes(uint8_t *at, const void *data, size_t size);

#endif
