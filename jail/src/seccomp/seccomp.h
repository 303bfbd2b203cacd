/*
 * Compiles policies into classic BPF programs for seccomp. Built once by the
 * master; a jail or a keeper only loads its own.
 */
#ifndef JAIL_SECCOMP_H
#define JAIL_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#define SECCOMP_PROGRAM_MAX 4096

struct seccomp_program {
	struct sock_filter code[SECCOMP_PROGRAM_MAX];
	unsigned short size;
};

/* In this order: policy.h, keeper_policy.h, host_policy.h (for the master and everything below it), zygote_policy.h. */
enum policy_name { POLICY_OF_PROGRAMS, POLICY_OF_KEEPERS, POLICY_OF_ALL, POLICY_OF_ZYGOTES };

/* False when the policy does not fit into a program. */
bool seccomp_build_for(struct seccomp_program *program, enum policy_name name);
/* The filter of programs. */
bool seccomp_build(struct seccomp_program *program);

/* The number of a system call on this architecture, -1 when it has none. */
int syscall_number(const char *name);

/* Binds the calling thread to the program for good; -1 and errno on failure. */
int seccomp_load(const struct seccomp_program *program);

#endif
