/*
 * The compiled policy, run by a small simulator of the packet filter machine: every line of the
 * table, unknown numbers, x32 numbers, foreign architectures, and garbage in the high halves.
 */
#include "lib/util.h"
#include "seccomp/host_policy.h"
#include "seccomp/keeper_policy.h"
#include "seccomp/policy.h"
#include "seccomp/seccomp.h"
#include "seccomp/zygote_policy.h"
#include "test.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#else
#define ARCH AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif

static struct seccomp_program program;

static uint32_t simulate(const struct seccomp_data *data)
{
	uint32_t accumulator = 0;

	for (unsigned pc = 0, steps = 0;; pc++, steps++) {
		const struct sock_filter *i = &program.code[pc];

		CHECK(pc < program.size && steps < 4096);
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			CHECK(i->k + 4 <= sizeof(*data) && i->k % 4 == 0);
			memcpy(&accumulator, (const char *)data + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			accumulator &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += accumulator == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += accumulator >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += accumulator & i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			CHECK(!"an instruction that the kernel refuses");
		}
	}
}

static uint32_t ask(int number, unsigned argument, uint64_t value)
{
	struct seccomp_data data = {.nr = number, .arch = ARCH};

	for (int i = 0; i < 6; i++)
		data.args[i] = (uint64_t)(test_random() | 1) << 32;
	data.args[argument] = value;
	return simulate(&data);
}

static uint32_t result_of(int action)
{
	return action == POLICY_ALLOW  ? SECCOMP_RET_ALLOW
	       : action == POLICY_KILL ? SECCOMP_RET_KILL_PROCESS
				       : SECCOMP_RET_ERRNO | (uint32_t)action;
}

/* What the table says, computed the slow way. */
static int expected_action(const struct policy_line *line, unsigned argument, uint32_t value)
{
	for (const struct policy_rule *rule = line->rules; rule->kind != RULE_END; rule++) {
		uint32_t seen = (rule->argument == argument ? value : 0) & rule->mask;
		bool equal = seen == rule->value;

		/* The other arguments carry garbage in their high halves, so none of them is NULL. */
		if (rule->kind == RULE_NULL)
			equal = false;
		if (rule->kind == RULE_DIFFERS || rule->kind == RULE_ANY_BIT ? !equal : equal)
			return rule->action;
	}
	return line->otherwise;
}

static void follows_every_line(void)
{
	for (size_t i = 0; i < COUNT(policy_checked); i++) {
		const struct policy_line *line = &policy_checked[i];
		int number = syscall_number(line->call);

		if (number < 0)
			continue;
		for (const struct policy_rule *rule = line->rules; rule->kind != RULE_END; rule++) {
			const uint32_t values[] = {rule->value, rule->value + 1, rule->value ^ 0x80000000u, 0, rule->mask,
						   ~rule->mask, 0xffffffffu, test_random()};

			for (size_t v = 0; v < COUNT(values); v++) {
				uint64_t garbage = (uint64_t)(test_random() | 1) << 32;
				uint32_t wanted = result_of(expected_action(line, rule->argument, values[v]));

				if (rule->kind != RULE_NULL)
					CHECK(ask(number, rule->argument, values[v]) == wanted);
				CHECK(ask(number, rule->argument, garbage | values[v]) == wanted);
			}
		}
	}
}

/* Numbers in a row are looked at together: none between them, or beside, may be taken for one of them. */
static void knows_every_value(void)
{
	for (size_t i = 0; i < COUNT(policy_checked); i++) {
		const struct policy_line *line = &policy_checked[i];
		int number = syscall_number(line->call);

		for (unsigned argument = 0; number >= 0 && argument < 6; argument++)
			for (uint32_t value = 0; value < 0x6000; value++)
				CHECK(ask(number, argument, UINT64_C(1) << 32 | value) ==
				      result_of(expected_action(line, argument, value)));
	}
}

static bool is_named(int number)
{
	for (size_t i = 0; i < COUNT(policy_allowed); i++)
		if (syscall_number(policy_allowed[i]) == number)
			return true;
	for (size_t i = 0; i < COUNT(policy_checked); i++)
		if (syscall_number(policy_checked[i].call) == number)
			return true;
	return false;
}

static void answers_every_number(void)
{
	for (int number = 0; number < 2000; number++)
		if (!is_named(number))
			CHECK(ask(number, 0, 0) == result_of(ENOSYS));
	for (size_t i = 0; i < COUNT(policy_allowed); i++)
		if (syscall_number(policy_allowed[i]) >= 0)
			CHECK(ask(syscall_number(policy_allowed[i]), 0, test_random()) == SECCOMP_RET_ALLOW);
	CHECK(ask(-1, 0, 0) == result_of(ENOSYS));
	CHECK(ask(0x7fffffff, 0, 0) == result_of(ENOSYS));
	for (int number = 0; number < 600; number++)
		CHECK(ask(0x40000000 + number, 0, 0) == result_of(ENOSYS));
}

static void kills_foreign_architectures(void)
{
	struct seccomp_data data = {.nr = 0, .arch = FOREIGN};

	for (data.nr = 0; data.nr < 600; data.nr++)
		CHECK(simulate(&data) == SECCOMP_RET_KILL_PROCESS);
}

/* A word in the table that this architecture lacks must be a known old or new call, never a slip. */
static void knows_every_name(void)
{
	static const char *const newer[] = {"fchmodat2"};

#if defined(__x86_64__)
	for (size_t i = 0; i < COUNT(policy_allowed); i++) {
		bool known = syscall_number(policy_allowed[i]) >= 0;

		for (size_t n = 0; n < COUNT(newer); n++)
			known = known || strcmp(newer[n], policy_allowed[i]) == 0;
		CHECK(known);
	}
	for (size_t i = 0; i < COUNT(policy_checked); i++)
		CHECK(syscall_number(policy_checked[i].call) >= 0);
#endif
	for (size_t i = 0; i < COUNT(policy_allowed); i++)
		for (size_t k = 0; k < COUNT(policy_allowed); k++)
			CHECK(i == k || strcmp(policy_allowed[i], policy_allowed[k]) != 0);
	for (size_t i = 0; i < COUNT(policy_checked); i++)
		for (size_t k = 0; k < COUNT(policy_allowed); k++)
			CHECK(strcmp(policy_checked[i].call, policy_allowed[k]) != 0);
	CHECK(syscall_number("no_such_call") == -1);
}

static uint32_t ask_prlimit(uint64_t pid, uint64_t resource, uint64_t new_limit)
{
	const struct seccomp_data data = {
		.nr = syscall_number("prlimit64"), .arch = ARCH, .args = {pid, resource, new_limit}};

	return simulate(&data);
}

static void guards_the_core_limit(void)
{
	CHECK(ask_prlimit(0, 4, 0) == SECCOMP_RET_ALLOW);
	CHECK(ask_prlimit(0, 4, 0x7fff00001000) == result_of(0));
	CHECK(ask_prlimit(0, 4, UINT64_C(1) << 32) == result_of(0)); /* a pointer with an empty low half */
	CHECK(ask_prlimit(0, UINT64_C(1) << 32 | 4, 1) == result_of(0));
	CHECK(ask_prlimit(0, 7, 0x7fff00001000) == SECCOMP_RET_ALLOW);
	CHECK(ask_prlimit(1, 7, 0) == result_of(EPERM) && ask_prlimit(1, 4, 0) == result_of(EPERM));
}

static uint32_t ask_priority(uint64_t kind, uint64_t who)
{
	const struct seccomp_data data = {.nr = syscall_number("setpriority"), .arch = ARCH, .args = {kind, who, 19}};

	return simulate(&data);
}

static uint32_t ask_fcntl(uint64_t command, uint64_t argument)
{
	const struct seccomp_data data = {.nr = syscall_number("fcntl"), .arch = ARCH, .args = {3, command, argument}};

	return simulate(&data);
}

/* Its number is 1, alone or as a group's, and it has the uid of the program. */
static void guards_the_first_process(void)
{
	static const char *const calls[] = {"sched_setscheduler", "sched_setparam", "sched_setaffinity"};

	for (size_t i = 0; i < COUNT(calls); i++) {
		CHECK(ask(syscall_number(calls[i]), 0, 1) == result_of(EPERM));
		CHECK(ask(syscall_number(calls[i]), 0, UINT64_C(1) << 32 | 1) == result_of(EPERM));
		CHECK(ask(syscall_number(calls[i]), 0, 0) == SECCOMP_RET_ALLOW || strcmp(calls[i], "sched_setscheduler") == 0);
	}
	for (uint64_t kind = 0; kind < 3; kind++)
		CHECK(ask_priority(kind, 1) == result_of(EPERM));
	CHECK(ask_priority(2, 0) == result_of(EPERM) && ask_priority(UINT64_C(1) << 32 | 2, 1000) == result_of(EPERM));
	CHECK(ask_priority(0, 0) == SECCOMP_RET_ALLOW && ask_priority(0, 2) == SECCOMP_RET_ALLOW);
	CHECK(ask_priority(1, 0) == SECCOMP_RET_ALLOW);
	for (const char *const *absent = (const char *const[]){"sched_setattr", "ioprio_set", "set_mempolicy",
							       "migrate_pages", "move_pages", "process_madvise", NULL};
	     *absent; absent++)
		CHECK(ask(syscall_number(*absent), 0, 1) == result_of(ENOSYS));
}

/* O_DIRECT is a flag of one command; other commands take any argument. */
static void keeps_descriptors_in_the_page_cache(void)
{
	CHECK(ask_fcntl(4 /* F_SETFL */, O_NONBLOCK | O_APPEND) == SECCOMP_RET_ALLOW);
	CHECK(ask_fcntl(4, O_DIRECT) == result_of(EINVAL));
	CHECK(ask_fcntl(UINT64_C(1) << 32 | 4, UINT64_C(1) << 32 | O_DIRECT | O_NONBLOCK) == result_of(EINVAL));
	CHECK(ask_fcntl(6 /* F_SETLK */, 0x7fff00000000 | O_DIRECT) == SECCOMP_RET_ALLOW);
	CHECK(ask_fcntl(1036 /* F_SET_RW_HINT */, 0) == result_of(EINVAL));
	CHECK(ask(syscall_number("openat"), 2, O_RDWR | O_CREAT) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("openat"), 2, UINT64_C(1) << 32 | O_DIRECT) == result_of(EINVAL));
	CHECK(ask(syscall_number("fsync"), 0, 3) == result_of(0));
	CHECK(ask(syscall_number("msync"), 2, 1 /* MS_ASYNC */) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("msync"), 2, 4 /* MS_SYNC */) == result_of(0));
}

static bool is_in(const char *const *names, size_t count, int number)
{
	for (size_t i = 0; i < count; i++)
		if (syscall_number(names[i]) == number)
			return true;
	return false;
}

static bool is_checked_of_keepers(int number)
{
	for (size_t i = 0; i < COUNT(keeper_checked); i++)
		if (syscall_number(keeper_checked[i].call) == number)
			return true;
	return false;
}

static uint32_t ask_keeper(const char *call, uint64_t second, uint64_t third, uint64_t fourth)
{
	const struct seccomp_data data = {
		.nr = syscall_number(call), .arch = ARCH, .args = {(uint32_t)AT_FDCWD, second, third, fourth}};

	return simulate(&data);
}

static void binds_keepers(void)
{
	CHECK(seccomp_build_for(&program, POLICY_OF_KEEPERS) && program.size < 160);
	for (int number = 0; number < 2000; number++)
		if (is_in(keeper_allowed, COUNT(keeper_allowed), number))
			CHECK(ask(number, 0, test_random()) == SECCOMP_RET_ALLOW);
		else if (!is_checked_of_keepers(number))
			CHECK(ask(number, 0, test_random()) == SECCOMP_RET_KILL_PROCESS);
	CHECK(ask(0x40000000, 0, 0) == SECCOMP_RET_KILL_PROCESS && ask(-1, 0, 0) == SECCOMP_RET_KILL_PROCESS);
	kills_foreign_architectures();
	for (uint64_t flags = 0; flags < 4096; flags++) {
		bool reads = (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) == 0;

		CHECK((ask_keeper("openat", 0, flags | O_CLOEXEC, 0) == SECCOMP_RET_ALLOW) == reads);
		CHECK((ask_keeper("openat", 0, flags | O_NOFOLLOW, 0) == SECCOMP_RET_ALLOW) ==
		      (reads || (flags & (O_ACCMODE | O_CREAT | O_EXCL)) == (O_WRONLY | O_CREAT | O_EXCL)));
	}
	for (uint64_t mode = 0; mode < 65536; mode++)
		CHECK((ask_keeper("fchmod", mode, 0, 0) == SECCOMP_RET_ALLOW) == (mode <= 0777));
	CHECK(ask_keeper("pidfd_send_signal", 9, 0, 0) == SECCOMP_RET_ALLOW);
	CHECK(ask_keeper("pidfd_send_signal", 9, 0, 4 /* a process group */) == SECCOMP_RET_KILL_PROCESS);
	CHECK(ask_keeper("pidfd_send_signal", 15, 0, 0) == SECCOMP_RET_KILL_PROCESS);
	CHECK(ask_keeper("mmap", 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS) == SECCOMP_RET_ALLOW);
	CHECK(ask_keeper("mmap", 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS) == SECCOMP_RET_KILL_PROCESS);
	CHECK(ask_keeper("mmap", 4096, PROT_READ, MAP_PRIVATE) == SECCOMP_RET_KILL_PROCESS);
}

static void binds_all(void)
{
	CHECK(seccomp_build_for(&program, POLICY_OF_ALL) && program.size < 100);
	for (int number = 0; number < 1000; number++)
		CHECK(ask(number, 0, test_random()) ==
		      (is_in(host_denied, COUNT(host_denied), number) ? result_of(EPERM) : SECCOMP_RET_ALLOW));
	for (int number = 0; number < 600; number++)
		CHECK(ask(0x40000000 + number, 0, 0) == result_of(ENOSYS));
	CHECK(ask(-1, 0, 0) == result_of(ENOSYS) && ask(5000, 0, 0) == result_of(ENOSYS));
	kills_foreign_architectures();
#if defined(__x86_64__)
	for (size_t i = 0; i < COUNT(keeper_allowed); i++)
		CHECK(syscall_number(keeper_allowed[i]) >= 0);
	for (size_t i = 0; i < COUNT(host_denied); i++)
		CHECK(syscall_number(host_denied[i]) >= 0);
#endif
}

/* All that a program may do, since their copies become programs, and nothing beyond but what the table names. */
static void binds_zygotes(void)
{
	static struct seccomp_program of_programs, of_zygotes;

	CHECK(seccomp_build(&of_programs) && seccomp_build_for(&of_zygotes, POLICY_OF_ZYGOTES) && of_zygotes.size < 288);
	for (int number = 0; number < 1000; number++)
		for (unsigned argument = 0; argument < 6; argument++) {
			uint64_t value = test_random() % 64;
			uint32_t answers[2];

			if (number == syscall_number("setns") || number == syscall_number("unshare") ||
			    is_in(zygote_allowed, COUNT(zygote_allowed), number))
				continue;
			program = of_programs;
			answers[0] = ask(number, argument, value);
			program = of_zygotes;
			answers[1] = ask(number, argument, value);
			CHECK(answers[0] == answers[1]);
		}
	for (size_t i = 0; i < COUNT(zygote_allowed); i++)
		CHECK(ask(syscall_number(zygote_allowed[i]), 0, test_random()) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("setns"), 1, 0) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("setns"), 1, 0x20000 /* CLONE_NEWNS */) == result_of(EPERM));
	CHECK(ask(syscall_number("unshare"), 0, 0x10000) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("unshare"), 0, 0x10020000) == result_of(EPERM));
	kills_foreign_architectures();
}

void test_policy(void)
{
	binds_keepers();
	binds_all();
	binds_zygotes();
	CHECK(seccomp_build(&program));
	/* The kernel translates it for every process that loads it. */
	CHECK(program.size > 100 && program.size < 288);
	follows_every_line();
	knows_every_value();
	answers_every_number();
	kills_foreign_architectures();
	knows_every_name();
	guards_the_core_limit();
	guards_the_first_process();
	keeps_descriptors_in_the_page_cache();
	/* The lines that matter most, spelled out. */
	CHECK(ask(syscall_number("socket"), 0, 1) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("socket"), 0, 2) == result_of(EPERM));
	CHECK(ask(syscall_number("socket"), 0, UINT64_C(1) << 32 | 2) == result_of(EPERM));
	CHECK(ask(syscall_number("clone"), 0, 0x10000011) == result_of(EPERM));
	CHECK(ask(syscall_number("clone"), 0, 0x3d0f00 /* a thread */) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("clone"), 0, 0x4111 /* a vforked child */) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("clone"), 0, 0x411 /* a child with the same file table */) == result_of(EINVAL));
	CHECK(ask(syscall_number("fcntl"), 1, 6 /* F_SETLK */) == SECCOMP_RET_ALLOW);
	for (uint64_t command = 36 /* F_OFD_GETLK */; command <= 38 /* F_OFD_SETLKW */; command++)
		CHECK(ask(syscall_number("fcntl"), 1, command) == result_of(EINVAL));
	CHECK(ask(syscall_number("fcntl"), 1, 1024 /* F_SETLEASE */) == result_of(EINVAL));
	CHECK(ask(syscall_number("futex"), 1, 0x89 /* WAIT_BITSET, private */) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("futex"), 1, UINT64_C(1) << 32 | 0x86 /* LOCK_PI, private */) == result_of(ENOSYS));
	CHECK(ask(syscall_number("recvmsg"), 2, 0x40 /* MSG_DONTWAIT */) == SECCOMP_RET_ALLOW);
	CHECK(ask(syscall_number("recvmsg"), 2, 0x41 /* and MSG_OOB */) == result_of(EOPNOTSUPP));
	CHECK(ask(syscall_number("clone3"), 0, 0) == result_of(ENOSYS));
	CHECK(ask(syscall_number("ptrace"), 0, 0) == result_of(ENOSYS));
}
