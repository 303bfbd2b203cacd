#include "seccomp/seccomp.h"

#include "lib/util.h"
#include "seccomp/host_policy.h"
#include "seccomp/keeper_policy.h"
#include "seccomp/policy.h"
#include "seccomp/zygote_policy.h"

#include <asm/unistd.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no system call policy for this architecture"
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "an argument's low half comes first on little endian machines only"
#endif

#define NUMBERS 1024 /* more than the kernel has */
#define NEAR 254 /* a conditional jump can skip 255 instructions; one is left for a jump that bring_near adds */

static const struct {
	const char *name;
	int number;
} numbers[] = {
#include "syscalls.inc"
};

/* The outcome of a number: the default action, the action of named calls, no such call, or FIRST_LINE + index of a checked line. */
enum { OTHER, NAMED, ABSENT, FIRST_LINE };

static const struct policy {
	const char *const *names;
	size_t name_count;
	int named, other; /* actions */
	const struct policy_line *lines;
	size_t line_count;
	const struct policy *base; /* the policy that this one extends, or NULL */
} policies[] = {
	[POLICY_OF_PROGRAMS] = {policy_allowed, COUNT(policy_allowed), POLICY_ALLOW, ENOSYS, policy_checked, COUNT(policy_checked), NULL},
	[POLICY_OF_KEEPERS] = {keeper_allowed, COUNT(keeper_allowed), POLICY_ALLOW, POLICY_KILL, keeper_checked, COUNT(keeper_checked), NULL},
	[POLICY_OF_ALL] = {host_denied, COUNT(host_denied), EPERM, POLICY_ALLOW, NULL, 0, NULL},
	[POLICY_OF_ZYGOTES] = {zygote_allowed, COUNT(zygote_allowed), POLICY_ALLOW, ENOSYS, zygote_checked, COUNT(zygote_checked),
			       &policies[POLICY_OF_PROGRAMS]},
};

struct range {
	unsigned first;
	unsigned short outcome;
};

/*
 * The program is built from its end to its beginning, so that the target of a jump exists before the jump. An instruction
 * is identified by its distance from the end.
 */
struct builder {
	const struct policy *policy;
	struct sock_filter code[SECCOMP_PROGRAM_MAX];
	unsigned size;
	struct range ranges[NUMBERS + 1];
	size_t count;
	const struct policy_line *lines[NUMBERS];
	size_t line_count;
	unsigned line[NUMBERS]; /* the first instruction of each */
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
	if (b->size >= SECCOMP_PROGRAM_MAX) {
		b->full = true;
		return 0;
	}
	b->code[b->size] = (struct sock_filter){.code = (__u16)code, .jt = (__u8)jt, .jf = (__u8)jf, .k = k};
	return b->size++;
}

/* The number of instructions that a jump emitted now would skip. */
static unsigned distance(const struct builder *b, unsigned target)
{
	return b->size - target - 1;
}

/* A return instruction. An equal one that is near is reused. */
static unsigned make_return(struct builder *b, int action)
{
	unsigned result = action == POLICY_ALLOW  ? SECCOMP_RET_ALLOW
			  : action == POLICY_KILL ? SECCOMP_RET_KILL_PROCESS
						  : SECCOMP_RET_ERRNO | ((unsigned)action & 0xfff);

	for (unsigned at = b->size; at-- > 0 && distance(b, at) <= NEAR;)
		if (b->code[at].code == (BPF_RET | BPF_K) && b->code[at].k == result)
			return at;
	return emit(b, BPF_RET | BPF_K, result, 0, 0);
}

/* The target itself, or a jump to it when it is far. */
static unsigned bring_near(struct builder *b, unsigned target)
{
	return distance(b, target) <= NEAR ? target : emit(b, BPF_JMP | BPF_JA, distance(b, target), 0, 0);
}

static unsigned make_test(struct builder *b, unsigned code, unsigned k, unsigned yes, unsigned no)
{
	yes = bring_near(b, yes);
	no = bring_near(b, no);
	return emit(b, BPF_JMP | code | BPF_K, k, distance(b, yes), distance(b, no));
}

/* Emits a load, and a mask if needed. The instruction that was emitted last follows them. */
static unsigned make_load(struct builder *b, size_t offset, unsigned mask)
{
	if (mask != 0xffffffffu)
		emit(b, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	return emit(b, BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0);
}

/* The mask with which a rule loads its argument. RULE_ANY_BIT needs the whole word. */
static uint32_t loaded(const struct policy_rule *rule)
{
	return rule->kind == RULE_ANY_BIT ? 0xffffffffu : rule->mask;
}

static bool looks_at_same(const struct policy_rule *one, const struct policy_rule *other)
{
	return one->argument == other->argument && loaded(one) == loaded(other);
}

/* The number of consecutive rules with the same word and action: it does not matter which of them matches. */
static size_t count_alike(const struct policy_rule *rule)
{
	size_t count = 1;

	if (rule->kind == RULE_EQUAL)
		while (rule[count].kind == RULE_EQUAL && looks_at_same(rule, rule + count) && rule[count].action == rule->action)
			count++;
	return count;
}

/* Tests whether the loaded word is one of the values of these rules. Values are sorted; consecutive ones form one interval. */
static unsigned make_set(struct builder *b, const struct policy_rule *rule, size_t count, unsigned yes, unsigned no)
{
	uint32_t value[POLICY_RULES_MAX], low;
	unsigned at = no;
	size_t i, high;

	for (i = 0; i < count; i++) {
		size_t place = i;

		for (; place > 0 && value[place - 1] > rule[i].value; place--)
			value[place] = value[place - 1];
		value[place] = rule[i].value;
	}
	for (i = count; i > 0;) {
		high = --i;
		while (i > 0 && value[i - 1] + 1 == value[i] && value[high] < UINT32_MAX)
			i--;
		low = value[i];
		if (high - i < 2) {
			i = high;
			at = make_test(b, BPF_JEQ, value[high], yes, at);
			continue;
		}
		at = make_test(b, BPF_JGE, value[high] + 1, at, yes);
		at = make_test(b, BPF_JGE, low, at, no);
	}
	return at;
}

/* Emits the rules of a line from this one on; `seen` is the rule before it. */
static unsigned make_rules(struct builder *b, const struct policy_line *line, const struct policy_rule *rule,
			   const struct policy_rule *seen)
{
	size_t low = offsetof(struct seccomp_data, args) + 8u * rule->argument, alike;
	unsigned action, next, at;

	if (rule->kind == RULE_END)
		return make_return(b, line->otherwise);
	alike = count_alike(rule);
	next = make_rules(b, line, rule + alike, rule);
	action = make_return(b, rule->action);
	switch (rule->kind) {
	case RULE_ANY_BIT:
		at = make_test(b, BPF_JSET, rule->mask, action, next);
		break;
	case RULE_DIFFERS:
		at = make_test(b, BPF_JEQ, rule->value, next, action);
		break;
	case RULE_NULL:
		make_test(b, BPF_JEQ, 0, action, next);
		at = make_test(b, BPF_JEQ, 0, make_load(b, low + 4, rule->mask), next);
		break;
	default:
		at = make_set(b, rule, alike, action, next);
	}
	/* The loaded word stays loaded, except after RULE_NULL, which loads both halves. */
	if (!seen || seen->kind == RULE_NULL || !looks_at_same(seen, rule))
		at = make_load(b, low, loaded(rule));
	return at;
}

/* Lines of the base policy come first. */
static void collect_lines(struct builder *b, const struct policy *policy)
{
	if (policy->base)
		collect_lines(b, policy->base);
	for (size_t i = 0; i < policy->line_count; i++)
		b->lines[b->line_count++] = &policy->lines[i];
}

/* The index of the first line with the same rules. Such lines share their code. */
static size_t first_like(const struct builder *b, size_t line)
{
	const struct policy_line *wanted = b->lines[line];
	size_t i = 0;

	while (i < line && (b->lines[i]->otherwise != wanted->otherwise ||
			    memcmp(b->lines[i]->rules, wanted->rules, sizeof(wanted->rules)) != 0))
		i++;
	return i;
}

static void make_lines(struct builder *b)
{
	for (size_t i = b->line_count; i-- > 0;)
		if (first_like(b, i) == i)
			b->line[i] = make_rules(b, b->lines[i], b->lines[i]->rules, NULL);
}

static int action_of(const struct policy *policy, unsigned outcome)
{
	if (outcome == ABSENT)
		return policy->other == POLICY_ALLOW ? ENOSYS : policy->other;
	return outcome == NAMED ? policy->named : policy->other;
}

/* Emits a binary search for the last range that begins at or below the number. */
static unsigned make_search(struct builder *b, size_t from, size_t to)
{
	size_t middle = from + (to - from) / 2;
	unsigned outcome = b->ranges[from].outcome, above, below;

	if (to - from == 1)
		return outcome >= FIRST_LINE ? b->line[outcome - FIRST_LINE]
					     : make_return(b, action_of(b->policy, outcome));
	above = make_search(b, middle, to);
	below = make_search(b, from, middle);
	return make_test(b, BPF_JGE, b->ranges[middle].first, above, below);
}

static void find_outcomes(const struct builder *b, const struct policy *policy, unsigned short outcome[NUMBERS])
{
	size_t first_line = 0;

	if (policy->base) {
		find_outcomes(b, policy->base, outcome);
		first_line = policy->base->line_count;
	}
	for (size_t i = 0; i < policy->name_count; i++) {
		int number = syscall_number(policy->names[i]);

		if (number >= 0)
			outcome[number] = NAMED;
	}
	for (size_t i = 0; i < policy->line_count; i++) {
		int number = syscall_number(policy->lines[i].call);

		if (number >= 0)
			outcome[number] = (unsigned short)(FIRST_LINE + first_like(b, first_line + i));
	}
}

static void find_ranges(struct builder *b)
{
	unsigned short outcome[NUMBERS + 1] = {[NUMBERS] = ABSENT};

	find_outcomes(b, b->policy, outcome);
	for (unsigned i = 0; i <= NUMBERS; i++)
		if (i == 0 || outcome[i] != outcome[i - 1])
			b->ranges[b->count++] = (struct range){i, outcome[i]};
}

bool seccomp_build_for(struct seccomp_program *program, enum policy_name name)
{
	static struct builder b;
	unsigned search;

	memset(&b, 0, sizeof(b));
	b.policy = &policies[name];
	collect_lines(&b, b.policy);
	find_ranges(&b);
	make_lines(&b);
	search = make_search(&b, 0, b.count);
	/* x32 numbers fall into the last range, which is ABSENT. */
	if (distance(&b, search) > 0)
		emit(&b, BPF_JMP | BPF_JA, distance(&b, search), 0, 0);
	make_load(&b, offsetof(struct seccomp_data, nr), 0xffffffffu);
	emit(&b, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	emit(&b, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
	make_load(&b, offsetof(struct seccomp_data, arch), 0xffffffffu);
	program->size = (unsigned short)b.size;
	for (unsigned i = 0; i < b.size; i++)
		program->code[i] = b.code[b.size - 1 - i];
	return !b.full;
}

bool seccomp_build(struct seccomp_program *program)
{
	return seccomp_build_for(program, POLICY_OF_PROGRAMS);
}

int seccomp_load(const struct seccomp_program *program)
{
	struct sock_fprog fprog = {
		.len = program->size, .filter = (struct sock_filter *)program->code};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog);
}
