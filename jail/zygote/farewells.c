#include "farewells.h"

static const char *const watchers[] = {"gettrace", "getprofile"};

/* As they were before the program. */
static PyObject *threading, *wait_for_threads, *exits, *count_callbacks, *watched[2];
static ssize_t exit_count;
static long callback_count;

static PyObject *member(PyObject *module, const char *name)
{
	return module ? PyDict_GetItemString(PyModule_GetDict(module), name) : NULL;
}

static PyObject *loaded(const char *name)
{
	return PyDict_GetItemString(PyImport_GetModuleDict(), name);
}

static PyObject *keep(PyObject *object)
{
	if (object)
		Py_IncRef(object);
	return object;
}

/* -1: not known. */
static long call_for_number(PyObject *function)
{
	PyObject *result = function ? PyObject_CallFunctionObjArgs(function, NULL) : NULL;
	long number = result ? PyLong_AsLong(result) : -1;

	if (result)
		Py_DecRef(result);
	PyErr_Clear();
	return number;
}

void farewells_prepare(bool only_logging)
{
	threading = keep(loaded("threading"));
	wait_for_threads = keep(member(threading, "_shutdown"));
	exits = keep(member(threading, "_threading_atexits"));
	exit_count = exits ? PyList_Size(exits) : -1;
	count_callbacks = keep(member(loaded("atexit"), "_ncallbacks"));
	callback_count = only_logging ? call_for_number(count_callbacks) : -1;
	for (int i = 0; i < 2; i++)
		watched[i] = keep(PySys_GetObject(watchers[i]));
	PyErr_Clear();
}

static bool is_watched(void)
{
	for (int i = 0; i < 2; i++) {
		PyObject *watcher = watched[i] ? PyObject_CallFunctionObjArgs(watched[i], NULL) : NULL;
		bool none = watcher == &_Py_NoneStruct;

		if (watcher)
			Py_DecRef(watcher);
		if (!none)
			return true;
	}
	return false;
}

bool farewells_are_idle(void)
{
	bool idle = callback_count >= 0 && exit_count >= 0 && wait_for_threads && loaded("threading") == threading &&
		    !PyThreadState_Next(PyInterpreterState_ThreadHead(PyInterpreterState_Get())) &&
		    member(threading, "_shutdown") == wait_for_threads && member(threading, "_threading_atexits") == exits &&
		    PyList_Size(exits) == exit_count && !is_watched() && call_for_number(count_callbacks) == callback_count;

	PyErr_Clear();
	return idle;
}
