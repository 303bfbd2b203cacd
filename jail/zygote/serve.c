/*
 * What the zygote's script calls: serves requests in the zygote, and in each copy becomes the
 * program that it is given. The only function that this object offers.
 */
#include "enter.h"
#include "main.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* `names`: of the script's functions, see runtimes/python/root/usr/lib/svc/zygote. */
__attribute__((visibility("default"))) int svc_zygote_serve(PyObject *renew, PyObject *begin, PyObject *exit_status,
							    PyObject *hidden);

static void keep_memory(void *context, void *memory, size_t size)
{
	(void)context;
	(void)memory;
	(void)size;
}

/*
 * The program gets a thread state that nothing has run in: no frame below its own, a full
 * recursion limit, no context. The interpreter finds the state of the main thread in a slot that
 * is only set while it is empty, hence the one between old and new. The memory of the script's
 * frames stays, because objects may still point there.
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

static _Noreturn void become(PyObject *renew, PyObject *begin, PyObject *exit_status, PyObject *hidden)
{
	PyObject *word, *items, *path;
	struct job job;
	FILE *file = NULL;

	PyOS_AfterFork_Child();
	renew_thread_state();
	word = PyObject_CallFunctionObjArgs(renew, NULL);
	if (!word)
		_exit(126);
	zygote_await_job(&job, (uint32_t)PyLong_AsLong(word));
	Py_DecRef(word);
	items = PyBytes_FromStringAndSize(job.items, (ssize_t)job.size);
	path = items ? PyObject_CallFunctionObjArgs(begin, items, NULL) : NULL;
	zygote_close_rest();
	if (path && PyObject_IsTrue(path))
		file = fopen(PyBytes_AsString(path), "re");
	/* What this copy cannot be, or is not sure of, starts anew. */
	if (!file)
		program_execute(&job);
	Py_DecRef(items);
	zygote_become_program(&job);
	python_run(file, PyBytes_AsString(path), exit_status, hidden);
}

int svc_zygote_serve(PyObject *renew, PyObject *begin, PyObject *exit_status, PyObject *hidden)
{
	struct entry entry;

	if (!zygote_begin())
		return 1;
	zygote_is_complete();
	while (zygote_take(&entry)) {
		PyOS_BeforeFork();
		if (zygote_fork(&entry)) {
			zygote_enter(&entry);
			become(renew, begin, exit_status, hidden);
		}
		PyOS_AfterFork_Parent();
	}
	return 0;
}
