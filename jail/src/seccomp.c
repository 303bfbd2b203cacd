#include "seccomp.h"

#include "policy.h"
#include "util.h"

#include <asm/unistd.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no system call policy for this architecture"
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the position of an argument's low half is that of little endian machines"
#endif

#define NUMBERS 1024 /* more than the kernel has */
#define JUMP_MAX 255 /* of a conditional jump */

static const struct {
	const char *name;
	int number;
} numbers[] = {
#include "syscalls.inc"
};

/* What a number leads to: nothing, ALLOWED, or FIRST_LINE + index into policy_checked. */
enum { UNKNOWN, ALLOWED, FIRST_LINE };

struct range {
	unsigned first;
	unsigned short outcome;
};

struct builder {
	struct seccomp_program *program;
	struct range ranges[NUMBERS];
	size_t count;
	unsigned jump[COUNT(policy_checked)]; /* to the rules of a line, from the search; 0: none */
	bool full;
};

int syscall_number(const char *name)
{
	for (size_t i = 0; i < COUNT(numbers); i++)
		if (strcmp(numbers[i].name, name) == 0 && numbers[i].number < NUMBERS)
			return numbers[i].number;
	return -1;
}

static unsigned emit(struct builder *b, unsigned code, unsigned k, unsigned jt, unsigned jf)
{
	struct sock_filter instruction = {
		.code = (__u16)code, .jt = (__u8)jt, .jf = (__u8)jf, .k = k};
	unsigned at = b->program->size;

	if (at >= SECCOMP_PROGRAM_MAX) {
		b->full = true;
		return 0;
	}
	b->program->code[at] = instruction;
	b->program->size++;
	return at;
}

static void emit_return(struct builder *b, int action)
{
	unsigned result = action == POLICY_ALLOW ? SECCOMP_RET_ALLOW
						 : SECCOMP_RET_ERRNO | ((unsigned)action & 0xfff);

	emit(b, BPF_RET | BPF_K, result, 0, 0);
}

static void emit_load(struct builder *b, size_t offset)
{
	emit(b, BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0);
}

/* The rules that lead to the same action share its return, as long as they look at the same thing and nothing lies between. */
static size_t count_alike(const struct policy_rule *rule)
{
	size_t count = 1;

	if (rule->kind == RULE_EQUAL)
		while (rule[count].kind == RULE_EQUAL && rule[count].argument == rule->argument &&
		       rule[count].mask == rule->mask && rule[count].action == rule->action)
			count++;
	return count;
}

static void emit_line(struct builder *b, const struct policy_line *line)
{
	const struct policy_rule *seen = NULL;
	size_t alike;

	for (const struct policy_rule *rule = line->rules; rule->kind != RULE_END; seen = rule, rule += alike) {
		size_t low = offsetof(struct seccomp_data, args) + 8u * rule->argument;

		alike = count_alike(rule);
		/* What is loaded stays so, but for RULE_NULL, which loads both halves. */
		if (!seen || seen->kind == RULE_NULL || seen->argument != rule->argument || seen->mask != rule->mask) {
			emit_load(b, low);
			if (rule->mask != 0xffffffffu)
				emit(b, BPF_ALU | BPF_AND | BPF_K, rule->mask, 0, 0);
		}
		switch (rule->kind) {
		case RULE_ANY_BIT:
		case RULE_DIFFERS:
			emit(b, BPF_JMP | BPF_JEQ | BPF_K, rule->value, 1, 0);
			break;
		case RULE_NULL:
			emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
			emit_load(b, low + 4);
			__attribute__((fallthrough));
		default:
			for (size_t i = 0; i + 1 < alike; i++)
				emit(b, BPF_JMP | BPF_JEQ | BPF_K, rule[i].value, (unsigned)(alike - 1 - i), 0);
			emit(b, BPF_JMP | BPF_JEQ | BPF_K, rule[alike - 1].value, 0, 1);
		}
		emit_return(b, rule->action);
	}
	emit_return(b, line->otherwise);
}

/*
 * A binary search for the last range that begins at or below the number. The rules of a line stand behind the search, so
 * that its jumps are short.
 */
static void emit_search(struct builder *b, size_t from, size_t to)
{
	size_t middle = from + (to - from) / 2;
	unsigned jump, distance;

	if (to - from == 1) {
		unsigned outcome = b->ranges[from].outcome;

		if (outcome >= FIRST_LINE)
			b->jump[outcome - FIRST_LINE] = emit(b, BPF_JMP | BPF_JA, 0, 0, 0);
		else
			emit_return(b, outcome == ALLOWED ? POLICY_ALLOW : ENOSYS);
		return;
	}
	jump = emit(b, BPF_JMP | BPF_JGE | BPF_K, b->ranges[middle].first, 0, 0);
	emit_search(b, from, middle);
	distance = b->program->size - jump - 1;
	b->full = b->full || distance > JUMP_MAX;
	b->program->code[jump].jt = (__u8)distance;
	emit_search(b, middle, to);
}

static void emit_lines(struct builder *b)
{
	for (size_t i = 0; i < COUNT(policy_checked); i++) {
		if (b->jump[i] == 0)
			continue;
		b->program->code[b->jump[i]].k = b->program->size - b->jump[i] - 1;
		emit_line(b, &policy_checked[i]);
	}
}

static void find_ranges(struct builder *b)
{
	unsigned short outcome[NUMBERS] = {0};

	for (size_t i = 0; i < COUNT(policy_allowed); i++) {
		int number = syscall_number(policy_allowed[i]);

		if (number >= 0)
			outcome[number] = ALLOWED;
	}
	for (size_t i = 0; i < COUNT(policy_checked); i++) {
		int number = syscall_number(policy_checked[i].call);

		if (number >= 0)
			outcome[number] = (unsigned short)(FIRST_LINE + i);
	}
	for (unsigned i = 0; i < NUMBERS; i++)
		if (i == 0 || outcome[i] != outcome[i - 1])
			b->ranges[b->count++] = (struct range){i, outcome[i]};
	/* The last number of the table is unknown, and so is everything above it. */
}

bool seccomp_build(struct seccomp_program *program)
{
	static struct builder b;

	memset(&b, 0, sizeof(b));
	memset(program, 0, sizeof(*program));
	b.program = program;
	find_ranges(&b);
	emit_load(&b, offsetof(struct seccomp_data, arch));
	emit(&b, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
	emit(&b, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	emit_load(&b, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
	emit(&b, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	emit_return(&b, ENOSYS);
#endif
	emit_search(&b, 0, b.count);
	emit_lines(&b);
	return !b.full;
}

int seccomp_load(const struct seccomp_program *program)
{
	struct sock_fprog fprog = {
		.len = program->size, .filter = (struct sock_filter *)program->code};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog);
}
