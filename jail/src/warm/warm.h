/*
 * In a keeper: a jail whose program's process is there before its job, as a copy of a zygote
 * or as an interpreter that was started ahead and parked. The client asks for it, and may keep
 * the jail waiting for as long as it likes.
 */
#ifndef JAIL_WARM_H
#define JAIL_WARM_H

#include "keeper/conn.h"
#include "keeper/jail.h"
#include "keeper/request.h"

enum warm_status {
	WARM_NONE,  /* there is no such zygote now: the jail is as it was */
	WARM_BORN,  /* the process waits for its job */
	WARM_FAILED /* the jail is of no use any more */
};

enum warm_status warm_copy(struct jail *jail, const struct jail_config *config, const struct frame *name);

/* Starts the request's command ahead, with its limits. Never WARM_NONE. */
enum warm_status warm_prestart(struct jail *jail, const struct request *request, const struct options *options);

/* Sleeps until the client speaks; false when it left, or when the jail ended. */
bool warm_wait_for_client(const struct jail *jail, const struct conn *conn);

#endif
