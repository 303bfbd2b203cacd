#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/timestamp.h"

static bool in_words;

void log_in_words(void)
{
	in_words = true;
}

__attribute__((format(printf, 3, 0)))
static void write_word(enum log_level level, int error, const char *format, va_list args)
{
	struct log_word word = {.kind = level, .error = error};

	vsnprintf(word.text, sizeof(word.text), format, args);
	(void)!write(STDERR_FILENO, &word, offsetof(struct log_word, text) + strlen(word.text));
}

static size_t json_escape(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text && n + 7 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\') {
			out[n++] = '\\';
			out[n++] = (char)c;
		} else if (c < 0x20 || c >= 0x7f) {
			n += (size_t)snprintf(out + n, size - n, "\\u%04x", c);
		} else {
			out[n++] = (char)c;
		}
	}
	out[n] = '\0';
	return n;
}

__attribute__((format(printf, 4, 0)))
static void log_text(enum log_level level, int slot, int error, const char *format, va_list args)
{
	char text[512], escaped[1024], line[2048], moment[TIMESTAMP_SIZE];
	struct timespec now;
	int n;

	if (in_words) {
		write_word(level, error, format, args);
		return;
	}
	vsnprintf(text, sizeof(text), format, args);
	json_escape(escaped, sizeof(escaped), text);
	clock_gettime(CLOCK_REALTIME, &now);
	timestamp_text(moment, now.tv_sec, now.tv_nsec);
	n = snprintf(line, sizeof(line), "{\"level\":%d,\"time\":\"%s\",\"name\":\"jaild\"", level, moment);
	if (slot >= 0)
		n += snprintf(line + n, sizeof(line) - (size_t)n, ",\"slot\":%d", slot);
	if (error != 0)
		n += snprintf(line + n, sizeof(line) - (size_t)n, ",\"errno\":%d,\"error\":\"%s\"", error,
			      strerror(error));
	n += snprintf(line + n, sizeof(line) - (size_t)n, ",\"msg\":\"%s\"}\n", escaped);
	(void)write_all(STDERR_FILENO, line, (size_t)n);
}

void log_line(enum log_level level, int slot, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_text(level, slot, error, format, args);
	va_end(args);
}

_Noreturn void fatal(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	log_text(LOG_FATAL, -1, error, format, args);
	va_end(args);
	exit(1);
}

uint64_t monotonic_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void sleep_ms(unsigned ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&pause, NULL);
}

int write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

int write_file_at(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC), saved;
	size_t size = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, size);
	saved = n < 0 ? errno : EIO;
	close(fd);
	errno = saved;
	return n == (ssize_t)size ? 0 : -1;
}

ssize_t read_fd_text(int fd, char *buffer, size_t size)
{
	ssize_t n = pread(fd, buffer, size - 1, 0);

	if (n >= 0)
		buffer[n] = '\0';
	return n;
}

ssize_t read_file_at(int dir, const char *path, char *buffer, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC), saved;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read_fd_text(fd, buffer, size);
	saved = errno;
	close(fd);
	errno = saved;
	return n;
}

uint64_t keyed_number(const char *text, const char *key)
{
	size_t size = strlen(key);

	while (text && *text) {
		if (strncmp(text, key, size) == 0 && text[size] == ' ')
			return strtoull(text + size + 1, NULL, 10);
		text = strchr(text, '\n');
		if (text)
			text++;
	}
	return 0;
}

bool parse_u64(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (*text < '0' || *text > '9' || n > (max - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*value = n;
	return true;
}
