#include "early_end.h"

#include <stdlib.h>

/* A name in sys, where it is the last: the interpreter clears it when no module of the program is left. */
#define NAME "end_of_process"

static PyObject *get_objects, *collector_callbacks, *weak_reference, *none, *own_output, *own_error;
/* Sorted addresses: a set would ask each type for its hash, which a metaclass of the program may compute. */
static PyObject **harmless_types;
static size_t harmless_count;
static bool allowed;
static int end_status;

static PyObject *attribute_of(const char *module_name, const char *name)
{
	PyObject *module = PyImport_ImportModule(module_name);

	return module ? PyObject_GetAttrString(module, name) : NULL;
}

static int compare_addresses(const void *left, const void *right)
{
	uintptr_t a = (uintptr_t)*(PyObject *const *)left, b = (uintptr_t)*(PyObject *const *)right;

	return (a > b) - (a < b);
}

static bool remember_types(PyObject *types)
{
	ssize_t count = PyList_Size(types);

	harmless_types = count > 0 ? calloc((size_t)count, sizeof(*harmless_types)) : NULL;
	if (!harmless_types)
		return false;
	for (ssize_t i = 0; i < count; i++) {
		harmless_types[i] = PyList_GetItem(types, i);
		Py_IncRef(harmless_types[i]);
	}
	harmless_count = (size_t)count;
	qsort(harmless_types, harmless_count, sizeof(*harmless_types), compare_addresses);
	return true;
}

bool early_end_remember(PyObject *types)
{
	get_objects = attribute_of("gc", "get_objects");
	collector_callbacks = attribute_of("gc", "callbacks");
	weak_reference = attribute_of("weakref", "ReferenceType");
	none = attribute_of("builtins", "None");
	own_output = PySys_GetObject("stdout");
	own_error = PySys_GetObject("stderr");
	return get_objects && collector_callbacks && weak_reference && none && own_output && own_error &&
	       remember_types(types);
}

void early_end_allow(int status)
{
	allowed = true;
	end_status = status;
}

/*
 * Flushes here, so that the interpreter's own flush has nothing left to do that could fail. False for a stream of the
 * program's own, which is the program's business.
 */
static bool is_flushed(PyObject *stream, PyObject *own)
{
	PyObject *result = stream && stream == own ? PyObject_CallMethod(stream, "flush", NULL) : NULL;

	if (result)
		Py_DecRef(result);
	else
		PyErr_Clear();
	return result != NULL;
}

static bool has_no_callback(PyObject *reference)
{
	PyObject *callback = PyObject_GetAttrString(reference, "__callback__");

	if (callback)
		Py_DecRef(callback);
	else
		PyErr_Clear();
	return callback == none;
}

/* A finalizer that the program gave to a type of the zygote counts, too. */
static bool is_harmless(PyObject *object)
{
	PyObject *type = PyObject_Type(object);
	bool harmless = bsearch(&type, harmless_types, harmless_count, sizeof(type), compare_addresses)
			    ? !PyObject_HasAttrString(type, "__del__")
			    : type == weak_reference && has_no_callback(object);

	Py_DecRef(type);
	return harmless;
}

/* `module` and `names`: the main module and its dictionary, which may still exist; NULL: they are gone. */
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
	/*
	 * Callbacks of the collector count: the interpreter collects once more. One may be a built-in function, which the
	 * collector does not list.
	 */
	return count != known || PyList_Size(collector_callbacks) != 0;
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
