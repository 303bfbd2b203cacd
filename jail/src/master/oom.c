#include "master/oom.h"

#include "lib/util.h"

#include <fcntl.h>
#include <stdlib.h>

#define SCORE "/proc/self/oom_score_adj"
#define FIRST "1000"
#define LAST "-500"

int oom_kill_first(void)
{
	return write_file_at(AT_FDCWD, SCORE, FIRST);
}

void oom_kill_last(void)
{
	char text[16];

	/* jaild may have been started with a lower score already. */
	if (read_file_at(AT_FDCWD, SCORE, text, sizeof(text)) > 0 && strtol(text, NULL, 10) <= strtol(LAST, NULL, 10))
		return;
	if (write_file_at(AT_FDCWD, SCORE, LAST) < 0)
		log_line(LOG_WARN, -1, 0, "jaild may be ended when the machine is short of memory: it lacks CAP_SYS_RESOURCE");
}
