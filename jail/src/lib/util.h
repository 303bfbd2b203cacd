/*
 * Small helpers used everywhere: time, whole reads and writes, kernel control
 * files, and the log (one JSON object per line on stderr, pino's field names).
 */
#ifndef JAIL_UTIL_H
#define JAIL_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum log_level { LOG_INFO = 30, LOG_WARN = 40, LOG_ERROR = 50, LOG_FATAL = 60 };

/* A line of the log; slot < 0 and error == 0 leave their fields out. */
void log_line(enum log_level level, int slot, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A log line of a keeper, one per write. It has no terminator: only the used part of the text is written. */
enum { WORD_PAUSED = 1, WORD_CONTINUED }; /* other kinds are levels */
struct log_word {
	uint32_t kind;
	int32_t error;
	char text[512];
};
void log_in_words(void);

/* Logs at level fatal with the present errno and ends the process with status 1. */
_Noreturn void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t monotonic_us(void);
void sleep_ms(unsigned ms);

/* All bytes or -1. */
int write_all(int fd, const void *data, size_t size);

/* Opens, writes a control file in one write, closes. Paths are relative to dir. */
int write_file_at(int dir, const char *path, const char *text);

/* Reads a small file into a string; returns its length or -1. */
ssize_t read_file_at(int dir, const char *path, char *buffer, size_t size);
ssize_t read_fd_text(int fd, char *buffer, size_t size);

/* The number on the line "<key> <number>" of a kernel statistics text; 0 when absent. */
uint64_t keyed_number(const char *text, const char *key);

/* Decimal digits only, within [0, max]. */
bool parse_u64(const char *text, uint64_t max, uint64_t *value);

#endif
