/* A test is a function; a check that fails names its place and ends the process with status 1. */
#ifndef JAIL_TEST_H
#define JAIL_TEST_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                             \
	do {                                                                         \
		if (!(condition)) {                                                  \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                     \
		}                                                                    \
	} while (0)

void test_frame(void);
void test_hash(void);
void test_inputs(void);
void test_stage(void);
void test_listing(void);
void test_harvest(void);
void test_cgroup(void);
void test_policy(void);
void test_verdict(void);
void test_text(void);
void test_timestamp(void);
void test_tasks(void);
void test_freezer(void);
void test_clock(void);
void test_conn(void);
void test_check(void);
void test_locks(void);
void test_network(void);
void test_channel(void);
void test_zygote_wire(void);

/* Repeatable pseudo-random numbers. */
unsigned test_random(void);

#endif
