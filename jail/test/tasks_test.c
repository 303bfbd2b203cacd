/* What a task's own files say: its state letter, and whether its wait has a time limit. */
#include "cgroup/tasks.h"
#include "test.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static enum tasks_state waits(long number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	char text[192];

	snprintf(text, sizeof(text), "%ld 0x3 0x%lx 0x%lx 0x%lx 0x%lx 0x0 0x7ffd00 0x7f00\n", number, (unsigned long)a1,
		 (unsigned long)a2, (unsigned long)a3, (unsigned long)a4);
	return task_wait(text);
}

static void reads_letters(void)
{
	CHECK(task_letter("7 (cat) S 1 2 3") == 'S');
	CHECK(task_letter("7 (x) R 1 2 (y) S 1 2 3") == 'S');
	CHECK(task_letter("7 ()) D 1") == 'D');
	CHECK(task_letter("") == '\0' && task_letter("7 (cat") == '\0' && task_letter("7 (cat)") == '\0');
	CHECK(task_letter("7 (cat) ") == '\0');
}

static void knows_waits(void)
{
	const uint64_t minus = 0xffffffff, pointer = 0x7ffc0000;

	CHECK(waits(SYS_epoll_pwait, 0, 0, minus, 0) == TASKS_BLOCKED);
	CHECK(waits(SYS_epoll_pwait, 0, 0, UINT64_MAX, 0) == TASKS_BLOCKED);
	CHECK(waits(SYS_epoll_pwait, 0, 0, 0, 0) == TASKS_WAIT && waits(SYS_epoll_pwait, 0, 0, 1, 0) == TASKS_WAIT);
	CHECK(waits(SYS_ppoll, 0, 0, 0, 0) == TASKS_BLOCKED && waits(SYS_ppoll, 0, pointer, 0, 0) == TASKS_WAIT);
	CHECK(waits(SYS_pselect6, 0, 0, 0, 0) == TASKS_BLOCKED && waits(SYS_pselect6, 0, 0, 0, pointer) == TASKS_WAIT);
	CHECK(waits(SYS_rt_sigtimedwait, 0, 0, 0, 0) == TASKS_BLOCKED);
	CHECK(waits(SYS_rt_sigtimedwait, 0, pointer, 0, 0) == TASKS_WAIT);
	CHECK(waits(SYS_futex, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0, 0) == TASKS_BLOCKED);
	CHECK(waits(SYS_futex, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, pointer, 0) == TASKS_WAIT);
	CHECK(waits(SYS_futex, FUTEX_WAKE, 0, 0, 0) == TASKS_WAIT);
	CHECK(waits(SYS_fcntl, F_SETLKW, pointer, 0, 0) == TASKS_BLOCKED && waits(SYS_fcntl, F_SETLK, 0, 0, 0) == TASKS_WAIT);
	CHECK(waits(SYS_read, pointer, 1, 0, 0) == TASKS_BLOCKED && waits(SYS_wait4, 0, 0, 0, 0) == TASKS_BLOCKED);
	CHECK(waits(SYS_nanosleep, 0, 0, 0, 0) == TASKS_WAIT && waits(SYS_write, 0, 0, 0, 0) == TASKS_WAIT);
	CHECK(waits(-1, 0, 0, 0, 0) == TASKS_WAIT && waits(99999, 0, 0, 0, 0) == TASKS_WAIT);
}

/* Texts that the kernel does not write today. */
static void survives_nonsense(void)
{
	char text[192];

	CHECK(task_wait("running\n") == TASKS_RUN);
	CHECK(task_wait("") == TASKS_WAIT && task_wait("x") == TASKS_WAIT && task_wait("-1 0x7ffd 0x7f\n") == TASKS_WAIT);
	for (int round = 0; round < 20000; round++) {
		size_t size = test_random() % (sizeof(text) - 1);

		for (size_t i = 0; i < size; i++)
			text[i] = "0123456789abcdefx ()-S\n"[test_random() % 23];
		text[size] = '\0';
		(void)task_letter(text);
		(void)task_wait(text);
	}
}

/* This very process: it runs while it looks. */
static void looks_at_a_real_proc(void)
{
	const struct cgroup none = {.enabled = false};
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(proc >= 0 && null >= 0);
	CHECK(tasks_look(proc, &none) == TASKS_RUN);
	CHECK(tasks_look(proc, &none) == TASKS_RUN);
	CHECK(tasks_look(null, &none) == TASKS_RUN);
	close(proc);
	close(null);
}

void test_tasks(void)
{
	reads_letters();
	knows_waits();
	survives_nonsense();
	looks_at_a_real_proc();
}
