/*
 * The functions of a pre-started Node, each called at most once, in this order:
 *
 *   wait()     returns the job's arguments and environment (program.h)
 *   begin()    this process becomes that program
 *   execute()  it cannot: executes the job's command as in a cold start
 */
#include "node_api.h"

#include "interpreter/prestarted.h"

#include <fcntl.h>

__attribute__((visibility("default"))) int32_t node_api_module_get_api_version_v1(void);
__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports);

static struct job job;

static napi_value wait_for_job(napi_env env, napi_callback_info info)
{
	napi_value items = NULL;

	(void)info;
	prestarted_wait(&job);
	if (napi_create_buffer_copy(env, job.size, job.items, NULL, &items) != NAPI_OK)
		program_execute(&job);
	return items;
}

static napi_value begin(napi_env env, napi_callback_info info)
{
	(void)env;
	(void)info;
	prestarted_begin(&job);
	return NULL;
}

static napi_value execute(napi_env env, napi_callback_info info)
{
	(void)env;
	(void)info;
	/* Node marks all descriptors close-on-exec, even the standard streams. */
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
