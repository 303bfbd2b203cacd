/* See faults.h. The wrappers take and pass on six words, as both supported calling conventions allow. */
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS long a, long b, long c, long d, long e, long f

#define DECLARE(name)                     \
	long __real_##name(WORDS);        \
	long __wrap_##name(WORDS);
#define NEGATIVE(name) DECLARE(name)
#define NULL_POINTER(name) DECLARE(name)
#define NEVER(name)
#include "calls.def"
#undef NEGATIVE
#undef NULL_POINTER
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

static struct fault_plan *plan;
static struct ticket *ticket;
static uint32_t failing; /* number of the call, 0: none */
static enum role role = ROLE_MASTER;
static bool listens; /* from then on the master's children are keepers */

static void take_ticket(void)
{
	uint32_t number = __atomic_fetch_add(&plan->next, 1, __ATOMIC_SEQ_CST);

	ticket = number < TICKETS_MAX ? &plan->ticket[number] : NULL;
	failing = ticket && number < plan->tickets ? plan->first + number * plan->step : 0;
}

__attribute__((constructor)) static void map_plan(void)
{
	const char *path = getenv("SVC_FAULTS");
	int fd = path ? (int)__real_open64((long)path, O_RDWR, 0, 0, 0, 0) : -1;
	void *at = (void *)__real_mmap64(0, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		abort();
	close(fd);
	plan = at;
	if (plan->role == ROLE_MASTER || plan->role == ROLE_TEMPLATE)
		take_ticket();
}

static bool counts(const char *name)
{
	const char *only = plan->only;

	return *only == '!' ? strcmp(only + 1, name) != 0 : *only == '\0' || strcmp(only, name) == 0;
}

static bool fails(const char *name)
{
	if (!ticket || role != (enum role)plan->role || !counts(name))
		return false;
	if (++ticket->calls != failing)
		return false;
	strcpy(ticket->name, name);
	ticket->fired = 1;
	errno = (int)plan->error;
	return true;
}

static void be_born(void)
{
	if (role != ROLE_MASTER) {
		role += role != ROLE_TEMPLATE;
		return;
	}
	role = listens ? ROLE_KEEPER : ROLE_TEMPLATE;
	if (role == ROLE_KEEPER && plan->role >= ROLE_KEEPER)
		take_ticket();
}

static long after(const char *name, long first, long result)
{
	bool is_fork = strcmp(name, "fork") == 0;
	bool is_clone = strcmp(name, "syscall") == 0 && first == SYS_clone3;

	if (strcmp(name, "clone") == 0)
		role--;
	else if ((is_fork || is_clone) && (int)result == 0)
		be_born();
	else if (role == ROLE_MASTER && strcmp(name, "listen") == 0)
		listens = true;
	else if (ticket && (int)result >= 0 && strcmp(name, "accept4") == 0)
		ticket->met = 1;
	return result;
}

static void before(const char *name)
{
	/* Such a process shares memory with the one that makes it, which stands still meanwhile. */
	role += strcmp(name, "clone") == 0;
	if (ticket && strcmp(name, "execve") == 0)
		ticket->executed = 1;
}

#define WRAP(name, failure)                                           \
	long __wrap_##name(WORDS)                                     \
	{                                                             \
		if (fails(#name))                                     \
			return failure;                               \
		before(#name);                                        \
		return after(#name, a, __real_##name(a, b, c, d, e, f)); \
	}
#define NEGATIVE(name) WRAP(name, -1)
#define NULL_POINTER(name) WRAP(name, 0)
#include "calls.def"

/* The start's look at the machine is no part of a plan: its processes are no jail's. */
struct options;
bool __wrap_check_kernel(const struct options *options);
bool __wrap_check_groups(const struct options *options);

bool __wrap_check_kernel(const struct options *options)
{
	(void)options;
	return true;
}

bool __wrap_check_groups(const struct options *options)
{
	(void)options;
	return true;
}

/*
 * When the plan goes on from call to call, a keeper that could not make its jail ends like one that
 * was killed: its slot is filled again without a pause.
 */
void __wrap__exit(int status)
{
	__real__exit(role == ROLE_KEEPER && plan->step > 0 && ticket && ticket->fired ? 1 : status);
}
