/*
 * Called by the zygote's script: serves requests in the zygote, and in each copy becomes the program that it is given.
 *
 * The interpreter is not told about the fork. It would only make anew what other threads may hold, and there are none:
 * zygote_begin ensures that. The script does what modules want done in a new process.
 */
#include "early_end.h"
#include "interpreter/enter.h"
#include "run.h"
#include "module_proxies.h"
#include "fast_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The functions and data of the script, see _svc_zygote.py. Returns 1 when zygote_begin fails, and not otherwise. */
__attribute__((visibility("default"))) int svc_zygote_serve(PyObject *settle, PyObject *renew, PyObject *begin,
							    PyObject *module_proxies, PyObject *harmless_types, PyObject *usual);

/* The handler for atexit. */
__attribute__((visibility("default"))) void svc_zygote_at_exit(void);

/* Two readings of the clocks, each in whole seconds, may differ by this much by themselves. */
enum { CLOCK_STEP_S = 2 };

struct script {
	PyObject *renew, *begin, *usual;
};

static void keep_memory(void *context, void *memory, size_t size)
{
	(void)context;
	(void)memory;
	(void)size;
}

/*
 * The program gets a thread state that nothing has run in: no frame below its own, a full recursion limit, no context. The
 * interpreter finds the state of the main thread in a slot that is only set while it is empty, so the state `between`
 * exists between the old and the new one. The memory of the script's frames stays, because objects may still point there.
 */
static void renew_thread_state(void)
{
	PyInterpreterState *interpreter = PyInterpreterState_Get();
	PyThreadState *between = PyThreadState_New(interpreter);
	PyObjectArenaAllocator usual, keeping;

	PyObject_GetArenaAllocator(&usual);
	keeping = usual;
	keeping.free = keep_memory;
	PyThreadState_Clear(PyThreadState_Get());
	PyObject_SetArenaAllocator(&keeping);
	PyThreadState_DeleteCurrent();
	PyObject_SetArenaAllocator(&usual);
	PyEval_RestoreThread(PyThreadState_New(interpreter));
	PyThreadState_Clear(between);
	PyThreadState_Delete(between);
}

/* The path of the program that this copy has become, as bytes; NULL: none. */
static PyObject *look_closer(PyObject *begin, const struct job *job)
{
	PyObject *items = PyBytes_FromStringAndSize(job->items, (ssize_t)job->size);
	PyObject *path = items ? PyObject_CallFunctionObjArgs(begin, items, NULL) : NULL;

	if (items)
		Py_DecRef(items);
	return path && PyObject_IsTrue(path) ? path : NULL;
}

/* The time of day minus the monotonic time, in seconds. */
static int64_t clock_lead(void)
{
	struct timespec day, run;

	clock_gettime(CLOCK_REALTIME, &day);
	clock_gettime(CLOCK_MONOTONIC, &run);
	return (int64_t)day.tv_sec - run.tv_sec;
}

/* Calls the script's renew(). Returns the hash seed. */
static uint32_t renew(const struct script *script)
{
	PyObject *seed = PyObject_CallFunctionObjArgs(script->renew, NULL);
	uint32_t word;

	if (!seed)
		_exit(126);
	word = (uint32_t)PyLong_AsLong(seed);
	Py_DecRef(seed);
	return word;
}

/*
 * Renews again after a step of the clock: microVMs that continue from one saved state hold the same copies, and their
 * clocks are set then.
 */
static void await_job(const struct script *script, struct job *job)
{
	uint32_t word = renew(script);
	int64_t lead;

	python_rehearse();
	lead = clock_lead();
	zygote_await_job(job, word);
	if (llabs(clock_lead() - lead) > CLOCK_STEP_S)
		(void)renew(script);
}

static _Noreturn void become(const struct script *script)
{
	PyObject *path;
	struct job job;
	FILE *file;

	await_job(script, &job);
	zygote_close_rest();
	file = fast_path_open(&job, PyBytes_AsString(script->usual), (size_t)PyBytes_Size(script->usual));
	path = file ? PyBytes_FromStringAndSize(MAIN_PATH, sizeof(MAIN_PATH) - 1) : look_closer(script->begin, &job);
	if (!file && path)
		file = fopen(PyBytes_AsString(path), "re");
	/* What this copy cannot be, or is not sure of, starts anew. */
	if (!file)
		program_execute(&job);
	program_begin_warm(&job);
	python_run(file, PyBytes_AsString(path));
}

void svc_zygote_at_exit(void)
{
	early_end_prepare();
	module_proxies_install();
}

int svc_zygote_serve(PyObject *settle, PyObject *renew, PyObject *begin, PyObject *module_proxies,
		     PyObject *harmless_types, PyObject *usual)
{
	const struct script script = {renew, begin, usual};
	struct entry entry;

	if (!zygote_begin())
		return 1;
	renew_thread_state();
	python_rehearse();
	if (!early_end_remember(harmless_types) || !module_proxies_prepare(module_proxies) ||
	    !PyObject_CallFunctionObjArgs(settle, NULL)) {
		PyErr_Print();
		_exit(1);
	}
	zygote_is_complete();
	while (zygote_take(&entry))
		if (zygote_fork(&entry)) {
			zygote_enter(&entry);
			become(&script);
		}
	/* The calling frame no longer exists. */
	_exit(0);
}
