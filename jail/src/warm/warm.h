/*
 * In a keeper: a warm start. The program's process is in the jail before the job arrives, as the copy of a zygote or as a
 * pre-started interpreter. The client requests it and may send the job at any later time.
 */
#ifndef JAIL_WARM_H
#define JAIL_WARM_H

#include "keeper/conn.h"
#include "keeper/jail.h"
#include "keeper/request.h"

enum warm_status {
	WARM_NONE,  /* no such zygote is ready: the jail is unchanged */
	WARM_READY,  /* the process waits for its job */
	WARM_FAILED /* the jail must be ended */
};

enum warm_status warm_copy(struct jail *jail, const struct jail_config *config, const struct frame *name);

/* Pre-starts the request's command, with its limits. Never WARM_NONE. */
enum warm_status warm_prestart(struct jail *jail, const struct request *request, const struct options *options);

/* Waits until the client sends data; false when it disconnected or the jail ended. */
bool warm_wait_for_client(const struct jail *jail, const struct conn *conn);

#endif
