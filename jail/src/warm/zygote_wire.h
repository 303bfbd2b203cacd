/*
 * Messages between keeper, master and zygotes. A keeper's request is one message
 * on the template's pair of sockets, with its descriptors; the answer comes from the new
 * process itself, on the control channel of the jail.
 */
#ifndef JAIL_ZYGOTE_WIRE_H
#define JAIL_ZYGOTE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Descriptors of a request, in this order: the jail's namespaces, in the order in which they can be entered, then those of
 * its program.
 */
enum {
	GIVEN_PID, GIVEN_MNT, GIVEN_IPC, GIVEN_UTS, GIVEN_NET, GIVEN_CGROUP, GIVEN_USER, NAMESPACES,
	GIVEN_CONTROL = NAMESPACES, GIVEN_OUT, GIVEN_ERR, GIVEN_STDIN, GIVEN_JOB, GIVEN
};

struct zygote_request {
	uint32_t slot;
};

/* One message, without waiting. Keeper: -1 when it cannot be sent. */
int zygote_request_send(int socket, const struct zygote_request *request, const int given[GIVEN]);
/* Zygote: false when there is no request, or a malformed one, which is dropped with all its descriptors. */
bool zygote_request_receive(int socket, struct zygote_request *request, int given[GIVEN]);

/* Descriptors that a zygote starts with; from ZYGOTE_GROUPS on jaild's own control groups, one per hierarchy. */
enum { ZYGOTE_REQUESTS = 3, ZYGOTE_LINE, ZYGOTE_GROUPS };

/* The first message on a zygote's line, from the master. */
struct zygote_setup {
	uint32_t cgroup_version, groups;
	uint32_t copies; /* a zygote is old after this many copies */
};

/* Messages of a zygote to the master on its line. The zygote ends when the master closes the line. */
enum { ZYGOTE_READY = 'r', ZYGOTE_OLD = 'o' };

#endif
