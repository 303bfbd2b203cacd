/*
 * Compiles the policy into a classic BPF program for seccomp. Built once by the
 * master; a jail only loads it.
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

/* False when the policy does not fit into a program. */
bool seccomp_build(struct seccomp_program *program);

/* The number of a system call on this architecture, -1 when it has none. */
int syscall_number(const char *name);

/* Binds the calling thread to the program for good; -1 and errno on failure. */
int seccomp_load(const struct seccomp_program *program);

#endif
