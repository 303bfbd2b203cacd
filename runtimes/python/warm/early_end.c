#include "early_end.h"

#include <stdlib.h>

/* Of sys, where it is the last name: cleared when no module of the program is left. */
#define NAME "end_of_process"

static PyObject *get_objects, *harmless_types, *own_output, *own_error;
static bool allowed;
static int end_status;

static PyObject *attribute_of(const char *module_name, const char *name)
{
	PyObject *module = PyImport_ImportModule(module_name);

	return module ? PyObject_GetAttrString(module, name) : NULL;
}

/* Containers, and what the interpreter gives to the main module. */
static PyObject *types_without_code(void)
{
	static const char *const names[] = {"dict", "frozenset", "list", "set", "tuple"};
	PyObject *types = PySet_New(NULL), *loader = attribute_of("importlib.machinery", "SourceFileLoader");
	bool complete = types && loader && PySet_Add(types, loader) == 0;

	for (size_t i = 0; complete && i < sizeof(names) / sizeof(*names); i++) {
		PyObject *type = attribute_of("builtins", names[i]);

		complete = type && PySet_Add(types, type) == 0;
	}
	return complete ? types : NULL;
}

bool early_end_remember(void)
{
	get_objects = attribute_of("gc", "get_objects");
	harmless_types = types_without_code();
	own_output = PySys_GetObject("stdout");
	own_error = PySys_GetObject("stderr");
	return get_objects && harmless_types && own_output && own_error;
}

void early_end_allow(int status)
{
	allowed = true;
	end_status = status;
}

/* Done here, the interpreter's own flush has nothing left to do that could fail. A stream of the program's is its business. */
static bool is_flushed(PyObject *stream, PyObject *own)
{
	PyObject *result = stream && stream == own ? PyObject_CallMethod(stream, "flush", NULL) : NULL;

	if (result)
		Py_DecRef(result);
	else
		PyErr_Clear();
	return result != NULL;
}

/* Gone without a trace: a container runs no code of a program's, and what it holds is looked at by itself. */
static bool is_harmless(PyObject *object)
{
	PyObject *type = PyObject_Type(object);
	int found = PySet_Contains(harmless_types, type);

	Py_DecRef(type);
	if (found < 0)
		PyErr_Clear();
	return found == 1;
}

/* `names`: of the main module, which with them may be there; NULL: it is gone. */
static bool is_anything_left(PyObject *module, PyObject *names)
{
	PyObject *objects = PyObject_CallFunctionObjArgs(get_objects, NULL);
	ssize_t count = objects ? PyList_Size(objects) : -1, known = 0;

	for (ssize_t i = 0; i < count && i == known; i++) {
		PyObject *object = PyList_GetItem(objects, i);

		known += (names && (object == module || object == names)) || is_harmless(object);
	}
	if (objects)
		Py_DecRef(objects);
	else
		PyErr_Clear();
	return count != known;
}

static void modules_are_gone(PyObject *capsule)
{
	(void)capsule;
	PyErr_Clear();
	if (!is_anything_left(NULL, NULL))
		exit(end_status);
}

void early_end_prepare(void)
{
	PyObject *module = PyImport_AddModule("__main__"), *capsule;

	if (!allowed || !module || !is_flushed(PySys_GetObject("stderr"), own_error) ||
	    !is_flushed(PySys_GetObject("stdout"), own_output)) {
		PyErr_Clear();
		return;
	}
	if (!is_anything_left(module, PyModule_GetDict(module)))
		exit(end_status);
	capsule = PyCapsule_New(&end_status, NULL, modules_are_gone);
	if (!capsule || PySys_SetObject(NAME, capsule) < 0)
		PyErr_Clear();
	if (capsule)
		Py_DecRef(capsule);
}
