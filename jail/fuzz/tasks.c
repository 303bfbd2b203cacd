/* What is read of a program's tasks: the kernel writes it, with a name that the program chose. */
#include "cgroup/tasks.h"
#include "fuzz.h"
#include "lib/util.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum tasks_state state;
	uint64_t number;
	char *text = malloc(size + 32);

	PROMISE(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	state = task_wait(text);
	PROMISE(state == TASKS_RUN || state == TASKS_WAIT || state == TASKS_BLOCKED);
	(void)task_letter(text);
	(void)keyed_number(text, "oom_kill");
	if (parse_u64(text, 1000, &number))
		PROMISE(number <= 1000 && strspn(text, "0123456789") == strlen(text));
	/* A name cannot say in the place of the kernel what its task does. */
	memmove(text + 3, text, size + 1);
	memcpy(text, "7 (", 3);
	strcpy(text + strlen(text), ") S 1 7 7 0 -1");
	PROMISE(task_letter(text) == 'S');
	free(text);
	return 0;
}
