/*
 * Runs a file as `python3 file` does, up to the last thing that a program can notice of its end:
 * the module, the traceback, exits of every kind, threads and atexit, finalizers, output. What
 * the interpreter would do after that, the kernel does faster.
 */
#include "main.h"

#include "farewells.h"
#include "leavings.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS_FLUSH_FAILED 120 /* as Python's own */

static int status;
static bool status_is_known; /* otherwise the interpreter itself is ending the process */
static bool interrupted;
static PyObject *original_output, *original_error;

static _Noreturn void end(void)
{
	if (interrupted) {
		(void)signal(SIGINT, SIG_DFL);
		(void)kill(getpid(), SIGINT);
		status = 128 + SIGINT;
	}
	_exit(status);
}

/* False when it cannot be written. What is no stream has nothing to write. */
static bool flush(PyObject *stream)
{
	PyObject *method = stream ? PyObject_GetAttrString(stream, "flush") : NULL, *result;

	if (!method) {
		PyErr_Clear();
		return true;
	}
	result = PyObject_CallFunctionObjArgs(method, NULL);
	Py_DecRef(method);
	if (result)
		Py_DecRef(result);
	else
		PyErr_Clear();
	return result != NULL;
}

static void flush_all(void)
{
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	(void)flush(PySys_GetObject("stderr"));
	(void)flush(PySys_GetObject("stdout"));
	PyErr_Restore(type, value, trace);
}

/* The last object of the module sys, which the interpreter clears, in order, when those of the program are gone. */
static void last_finalizer(PyObject *capsule)
{
	(void)capsule;
	if (!status_is_known)
		return;
	PyErr_Clear();
	(void)PyGC_Enable();
	(void)PyGC_Collect();
	if (!flush(original_output))
		status = STATUS_FLUSH_FAILED;
	(void)flush(original_error);
	end();
}

/*
 * Modules that are the zygote's still stay as they are: nothing of them has to be taken apart. Only looked at, because the
 * pages that hold them and their names are shared: the interpreter gets a smaller table, and the old one is left alone.
 */
static void hide_modules(PyObject *hidden)
{
	PyObject *modules = PyImport_GetModuleDict(), *rest = PyDict_New(), *name, *module;
	ssize_t at = 0;

	while (rest && PyDict_Next(modules, &at, &name, &module))
		if (PyDict_GetItem(hidden, name) != module && PyDict_SetItem(rest, name, module) < 0)
			PyErr_Clear();
	for (at = 0; rest && PyDict_Next(rest, &at, &name, &module);)
		if (PyDict_DelItem(modules, name) < 0)
			PyErr_Clear();
	if (rest)
		python_exchange_dicts(modules, rest);
	else
		PyErr_Clear();
}

static void call_if_there(const char *module, const char *function)
{
	PyObject *found = PyDict_GetItemString(PyImport_GetModuleDict(), module), *result;

	if (!found)
		return;
	result = PyObject_CallMethod(found, function, NULL);
	if (result)
		Py_DecRef(result);
	else
		PyErr_WriteUnraisable(found);
}

static PyObject *hold(const char *name)
{
	PyObject *object = PySys_GetObject(name);

	if (object)
		Py_IncRef(object);
	return object;
}

static void take_exit(PyObject *exit_status)
{
	PyObject *type, *value, *trace, *number;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	number = PyObject_CallFunctionObjArgs(exit_status, value, NULL);
	status = number ? (int)PyLong_AsLong(number) : -1;
	PyErr_Clear();
	Py_DecRef(type);
	Py_DecRef(value);
	if (trace)
		Py_DecRef(trace);
	if (number)
		Py_DecRef(number);
}

void python_rehearse(void)
{
	/* No class, import or error: these would leave something. */
	static char program[] = "def f(a, *b, c=1): return [n for n in b if n]\n"
				"print(*f(1)[:0], end='')\n";
	FILE *file = fmemopen(program, strlen(program), "r");
	PyObject *globals = PyDict_New(), *result = NULL;

	if (file && globals)
		result = PyRun_FileExFlags(file, "", PYTHON_FILE_INPUT, globals, globals, 1, NULL);
	if (result)
		Py_DecRef(result);
	if (globals)
		Py_DecRef(globals);
	PyErr_Clear();
	flush_all();
	if (farewells_are_idle())
		(void)leavings_are_silent(PyImport_AddModule("__main__"));
}

_Noreturn void python_run(FILE *file, const char *path, PyObject *exit_status, PyObject *hidden)
{
	PyObject *module = PyImport_AddModule("__main__"), *globals = PyModule_GetDict(module), *result, *capsule;
	bool exited, idle, silent;

	result = PyRun_FileExFlags(file, path, PYTHON_FILE_INPUT, globals, globals, 1, NULL);
	flush_all();
	exited = !result && PyErr_ExceptionMatches(PyExc_SystemExit);
	if (exited) {
		take_exit(exit_status);
	} else if (result) {
		Py_DecRef(result);
	} else {
		status = 1;
		interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
		PyErr_Print();
	}
	if (!exited && (PyDict_DelItemString(globals, "__file__") < 0 || PyDict_DelItemString(globals, "__cached__") < 0))
		PyErr_Clear();
	idle = farewells_are_idle();
	silent = idle && leavings_are_silent(module);
	if (!silent) {
		call_if_there("threading", "_shutdown");
		call_if_there("atexit", "_run_exitfuncs");
		/* What was called may have taken away what speaks. */
		silent = !idle && leavings_are_silent(module);
	}
	original_output = hold("__stdout__");
	original_error = hold("__stderr__");
	if (silent && flush(PySys_GetObject("stdout")) && flush(PySys_GetObject("stderr")) &&
	    flush(original_output) && flush(original_error))
		end();
	hide_modules(hidden);
	capsule = PyCapsule_New(&status, NULL, last_finalizer);
	if (capsule && PySys_SetObject("last", capsule) == 0)
		Py_DecRef(capsule);
	status_is_known = true;
	if (Py_FinalizeEx() < 0)
		status = STATUS_FLUSH_FAILED;
	end();
}
