#include "keeper/journal.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define WORDS 32     /* messages per read; a pipe of packets holds fewer */
#define LINES_MAX 64 /* per keeper; a healthy one logs a few */

int journal_open(struct journal *journal)
{
	int ends[2];

	*journal = (struct journal){.fd = -1};
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK | O_DIRECT) < 0)
		return -1;
	journal->fd = ends[0];
	return ends[1];
}

static void stop(struct journal *journal)
{
	close(journal->fd);
	journal->fd = -1;
}

static void log_word(struct journal *journal, int slot, const struct log_word *word, size_t size)
{
	const size_t head = offsetof(struct log_word, text);
	char text[sizeof(*word) + 1] = "";

	if (++journal->lines > LINES_MAX) {
		log_line(LOG_WARN, slot, 0, "the keeper logs too much: its further lines are dropped");
		stop(journal);
		return;
	}
	if (size > head && (word->kind == LOG_INFO || word->kind == LOG_WARN || word->kind == LOG_ERROR)) {
		memcpy(text, word->text, size - head);
		log_line((enum log_level)word->kind, slot, word->error, "%s", text);
		return;
	}
	/* Plain text: the C library writes it before it aborts. */
	memcpy(text, word, size);
	log_line(LOG_WARN, slot, 0, "output of the keeper: %s", text);
}

void journal_read(struct journal *journal, int slot)
{
	struct log_word word;
	ssize_t size;

	for (int i = 0; i < WORDS && journal->fd >= 0 && (size = read(journal->fd, &word, sizeof(word))) > 0; i++) {
		bool is_notice = size == (ssize_t)offsetof(struct log_word, text);

		if (is_notice && (word.kind == WORD_PAUSED || word.kind == WORD_CONTINUED))
			journal->paused = word.kind == WORD_PAUSED;
		else
			log_word(journal, slot, &word, (size_t)size);
	}
}

void journal_close(struct journal *journal, int slot)
{
	journal_read(journal, slot);
	if (journal->fd >= 0)
		stop(journal);
}

int journal_begin(int end)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(end, fd) < 0)
			return -1;
	log_in_words();
	return 0;
}

void journal_send_paused(bool paused)
{
	const struct log_word word = {.kind = paused ? WORD_PAUSED : WORD_CONTINUED};

	(void)!write(STDERR_FILENO, &word, offsetof(struct log_word, text));
}
