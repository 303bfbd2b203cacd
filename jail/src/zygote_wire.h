/*
 * What keeper, master and a zygote say to each other. A keeper's request is one message
 * on the template's pair of sockets, with its descriptors; the answer comes from the new
 * process itself, on the control channel of the jail.
 */
#ifndef JAIL_ZYGOTE_WIRE_H
#define JAIL_ZYGOTE_WIRE_H

#include <stdint.h>

/* Descriptors of a request, in this order. */
enum { GIVEN_INIT, GIVEN_CONTROL, GIVEN_OUT, GIVEN_ERR, GIVEN_STDIN, GIVEN_JOB, GIVEN };

struct zygote_request {
	uint32_t slot;
};

/* Descriptors that a zygote is born with; from ZYGOTE_GROUPS on jaild's own control groups, one per hierarchy. */
enum { ZYGOTE_REQUESTS = 3, ZYGOTE_LINE, ZYGOTE_GROUPS };

/* The first message on a zygote's line, from the master. */
struct zygote_setup {
	uint32_t cgroup_version, groups;
	uint32_t copies; /* after so many it is old */
};

/* What a zygote tells the master on its line; the end of the line is its end. */
enum { ZYGOTE_READY = 'r', ZYGOTE_OLD = 'o' };

#endif
