/*
 * Loaded by an interpreter that was started ahead of its job, in its jail and under its
 * complete confinement. Three functions, each called at most once, in this order:
 *
 *   wait()     says that it is ready, sleeps until there is a job, takes the job's
 *              standard input and limits, and answers its arguments and environment
 *              (program.h)
 *   begin()    it will be that program: the keeper is told, nothing of this stays open
 *   execute()  it cannot: the job's command is executed as in a cold start
 *
 * Until wait() answers, no byte of a job has been read. A call that fails ends the process.
 */
#include "node.h"

#include "../src/confine.h"
#include "../src/program.h"
#include "../src/sys.h"

#include <sys/socket.h>

__attribute__((visibility("default"))) int32_t node_api_module_get_api_version_v1(void);
__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports);

static struct job job;

static napi_value wait_for_job(napi_env env, napi_callback_info info)
{
	struct message message = {.kind = MESSAGE_READY};
	napi_value items = NULL;

	(void)info;
	MUST(FD_CONTROL, JOB, send(FD_CONTROL, &message, sizeof(message), MSG_NOSIGNAL));
	program_wait_for_job(&message);
	program_take_job(&message, &job);
	if (napi_create_buffer_copy(env, job.size, job.items, NULL, &items) != NAPI_OK)
		program_execute(&job);
	return items;
}

static napi_value begin(napi_env env, napi_callback_info info)
{
	(void)env;
	(void)info;
	MUST(FD_CONTROL, CLOSE, sys_close_range(FD_OUT, FD_FIRST_UNUSED - 1, 0));
	program_begin_warm(&job);
	return NULL;
}

static napi_value execute(napi_env env, napi_callback_info info)
{
	(void)env;
	(void)info;
	/* Node lets no descriptor be inherited by mistake, the streams neither. */
	for (int fd = 0; fd < FD_BASE_USUAL; fd++)
		MUST(FD_CONTROL, STREAMS, fcntl(fd, F_SETFD, 0));
	program_execute(&job);
}

int32_t node_api_module_get_api_version_v1(void)
{
	return NAPI_VERSION;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	static const struct {
		const char *name;
		napi_callback call;
	} offered[] = {{"wait", wait_for_job}, {"begin", begin}, {"execute", execute}};

	for (size_t i = 0; i < sizeof(offered) / sizeof(offered[0]); i++) {
		napi_value function;

		if (napi_create_function(env, offered[i].name, (size_t)-1, offered[i].call, NULL, &function) != NAPI_OK ||
		    napi_set_named_property(env, exports, offered[i].name, function) != NAPI_OK)
			return NULL;
	}
	return exports;
}
