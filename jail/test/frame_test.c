/* The frame codec: every boundary, and random bytes under the sanitizers. */
#include "keeper/frame.h"
#include "test.h"

#include <string.h>

static struct frame frame_of(const void *payload, size_t size)
{
	return (struct frame){.tag = 'x', .payload = payload, .size = size};
}

static void decodes_frames(void)
{
	uint8_t *bytes = malloc(FRAME_HEADER + FRAME_MAX);
	struct frame frame;

	put_bytes(put_u8(put_u32(bytes, 4), 'A'), "abc", 3);
	for (size_t size = 0; size < 8; size++)
		CHECK(frame_decode(bytes, size, &frame) == 0);
	CHECK(frame_decode(bytes, 8, &frame) == 8);
	CHECK(frame.tag == 'A' && frame.size == 3 && memcmp(frame.payload, "abc", 3) == 0);
	put_u32(bytes, 0);
	CHECK(frame_decode(bytes, 8, &frame) == -1);
	put_u32(bytes, FRAME_MAX + 1);
	CHECK(frame_decode(bytes, 8, &frame) == -1);
	put_u32(bytes, UINT32_MAX);
	CHECK(frame_decode(bytes, 8, &frame) == -1);
	put_u8(put_u32(bytes, FRAME_MAX), 'B');
	CHECK(frame_decode(bytes, FRAME_HEADER + FRAME_MAX - 1, &frame) == 0);
	CHECK(frame_decode(bytes, FRAME_HEADER + FRAME_MAX, &frame) == FRAME_HEADER + FRAME_MAX);
	put_u8(put_u32(bytes, 1), 'R');
	CHECK(frame_decode(bytes, 5, &frame) == 5 && frame.size == 0);
	free(bytes);
}

static bool limits_with(unsigned field, uint64_t value)
{
	uint64_t words[10] = {1000, 0, 64 << 20, 10, 64, 1 << 20, 65536, 65536, 64, 0};
	uint8_t bytes[80], *at = bytes;
	struct limits limits;
	struct frame frame;

	if (field < 10)
		words[field] = value;
	for (unsigned i = 0; i < 10; i++)
		at = put_u64(at, words[i]);
	frame = frame_of(bytes, sizeof(bytes));
	return decode_limits(&frame, &limits);
}

static void decodes_limits(void)
{
	uint8_t bytes[81] = {0};
	struct limits limits;
	struct frame frame = frame_of(bytes, 79);

	CHECK(limits_with(10, 0));
	CHECK(!decode_limits(&frame, &limits));
	frame.size = 81;
	CHECK(!decode_limits(&frame, &limits));
	for (unsigned field = 0; field < 10; field++)
		CHECK(!limits_with(field, UINT64_MAX));
	CHECK(!limits_with(0, 0) && !limits_with(2, 0) && !limits_with(3, 0) && !limits_with(4, 15));
	CHECK(limits_with(1, 0) && limits_with(5, 0) && limits_with(6, 0) && limits_with(8, 0));
	CHECK(!limits_with(9, 1));
}

static bool path_ok(const char *path)
{
	return path_is_valid(path, strlen(path));
}

static void checks_paths(void)
{
	static const char *const good[] = {"a", "a/b", ".hidden", "...", "..a", "a..", "a b", "\xff", "-rf", "a\nb"};
	static const char *const bad[] = {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a/../b", "./a"};
	char path[5000];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(path_ok(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!path_ok(bad[i]));
	CHECK(!path_is_valid("a\0b", 3));
	memset(path, 'a', sizeof(path));
	CHECK(path_is_valid(path, 255) && !path_is_valid(path, 256));
	for (size_t i = 0; i < 200; i++)
		path[2 * i + 1] = '/';
	CHECK(path_is_valid(path, 2 * 64 - 1) && !path_is_valid(path, 2 * 65 - 1));
	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 128 == 127 ? '/' : 'a';
	CHECK(path_is_valid(path, 4095) && path_is_valid(path, 4095 - 128) && !path_is_valid(path, 4097));
}

static void decodes_inputs(void)
{
	uint8_t bytes[64], *at;
	struct directory_header directory;
	struct file_header file;
	struct frame frame;

	at = put_bytes(put_u64(put_u16(put_u8(put_u32(bytes, 7), 1), 0555), 99), "a/b", 3);
	frame = frame_of(bytes, (size_t)(at - bytes));
	CHECK(decode_file(&frame, &file));
	CHECK(file.input == 7 && file.read_only && file.mode == 0555 && file.size == 99 && file.path_size == 3);
	for (size_t size = 0; size < 16; size++) {
		frame.size = size;
		CHECK(!decode_file(&frame, &file));
	}
	frame.size = 18;
	bytes[4] = 2;
	CHECK(!decode_file(&frame, &file));
	bytes[4] = 0;
	put_u32(bytes, NO_INPUT);
	CHECK(!decode_file(&frame, &file));
	at = put_bytes(put_u16(put_u32(bytes, 3), 0700), "d", 1);
	frame = frame_of(bytes, (size_t)(at - bytes));
	CHECK(decode_directory(&frame, &directory) && directory.input == 3 && directory.mode == 0700 && directory.path_size == 1);
	frame.size = 6;
	CHECK(!decode_directory(&frame, &directory));
}

/* Never a bit beyond the permissions, and nobody may write what is read-only. */
static void checks_modes(void)
{
	uint8_t bytes[16] = {0};
	struct frame frame = frame_of(bytes, 16);
	struct directory_header directory;
	struct file_header file;

	bytes[15] = 'f';
	bytes[6] = bytes[7] = 'd';
	for (unsigned mode = 0; mode <= UINT16_MAX; mode++) {
		frame.size = 16;
		put_u16(bytes + 5, (uint16_t)mode);
		for (uint8_t read_only = 0; read_only <= 1; read_only++) {
			bytes[4] = read_only;
			CHECK(decode_file(&frame, &file) == (mode <= 0777 && !(read_only && (mode & 0222))));
		}
		put_u16(bytes + 4, (uint16_t)mode);
		bytes[6] = 'd';
		frame.size = 7;
		CHECK(decode_directory(&frame, &directory) == (mode <= 0777));
	}
}

static bool link_ok(const char *text, size_t size, struct link_header *link)
{
	struct frame frame = frame_of(text, size);

	return decode_link(&frame, link);
}

static void decodes_links(void)
{
	struct link_header link;
	char text[5000];

	CHECK(link_ok("a/b\0../../etc", 13, &link));
	CHECK(link.path_size == 3 && link.target_size == 9 && memcmp(link.target, "../../etc", 9) == 0);
	CHECK(!link_ok("", 0, &link) && !link_ok("a", 1, &link) && !link_ok("a\0", 2, &link) && !link_ok("\0b", 2, &link));
	CHECK(!link_ok("a\0b\0", 4, &link) && !link_ok("a\0\0b", 4, &link));
	CHECK(!link_ok("../a\0b", 6, &link) && !link_ok("/a\0b", 4, &link) && !link_ok("a/\0b", 4, &link));
	memset(text, 'x', sizeof(text));
	text[1] = '\0';
	CHECK(link_ok(text, 2 + 4095, &link) && link.target_size == 4095 && !link_ok(text, 2 + 4096, &link));
}

static void survives_random_bytes(void)
{
	for (int round = 0; round < 20000; round++) {
		size_t size = test_random() % 120;
		uint8_t *bytes = malloc(size + 1); /* exact, so that the sanitizer sees one byte too far */
		struct directory_header directory;
		struct file_header file;
		struct link_header link;
		struct limits limits;
		struct frame frame;
		uint64_t wide;
		uint32_t word;

		for (size_t i = 0; i < size; i++)
			bytes[i] = (uint8_t)(test_random() % (round % 2 ? 256 : 4));
		if (frame_decode(bytes, size, &frame) > 0)
			CHECK(frame.payload + frame.size <= bytes + size);
		frame = frame_of(bytes, size);
		(void)decode_limits(&frame, &limits);
		(void)decode_u64(&frame, &wide);
		(void)decode_u32(&frame, &word);
		if (decode_file(&frame, &file))
			CHECK((const uint8_t *)file.path + file.path_size == bytes + size);
		if (decode_link(&frame, &link))
			CHECK((const uint8_t *)link.target + link.target_size == bytes + size);
		(void)decode_directory(&frame, &directory);
		free(bytes);
	}
}

void test_frame(void)
{
	decodes_frames();
	decodes_limits();
	checks_paths();
	decodes_inputs();
	checks_modes();
	decodes_links();
	survives_random_bytes();
}
