/*
 * Looks at the objects that the collector of garbage knows and that are not the zygote's. Whoever loads a module or has
 * something open leaves one that speaks: an object that its type says good-bye for (__del__, generators, coroutines, files,
 * sockets, tasks), such a type itself, since the collector may not know its objects, a module, a weak reference that calls
 * back. All others are data, but for streams of the program's own, which are asked more than once at the end.
 */
#include "leavings.h"

#define TYPE_SUBCLASS (1ul << 31) /* Py_TPFLAGS_TYPE_SUBCLASS */
#define SLOT_DEL 53		  /* Py_tp_del */
#define SLOT_FINALIZE 80	  /* Py_tp_finalize */

/* Of the module gc, as it was before the program. */
static PyObject *get_objects, *get_debug, *callbacks, *output, *error_output;

void leavings_prepare(void)
{
	PyObject *gc = PyDict_GetItemString(PyImport_GetModuleDict(), "gc");

	if (gc) {
		get_objects = PyObject_GetAttrString(gc, "get_objects");
		get_debug = PyObject_GetAttrString(gc, "get_debug");
		callbacks = PyObject_GetAttrString(gc, "callbacks");
	}
	output = PySys_GetObject("stdout");
	error_output = PySys_GetObject("stderr");
	PyErr_Clear();
}

static bool are_streams_usual(void)
{
	return output && PySys_GetObject("stdout") == output && PySys_GetObject("__stdout__") == output && error_output &&
	       PySys_GetObject("stderr") == error_output && PySys_GetObject("__stderr__") == error_output;
}

static bool is_false(PyObject *object)
{
	return object && PyObject_IsTrue(object) == 0;
}

/* The collector itself tells nobody anything. */
static bool is_collector_silent(void)
{
	PyObject *flags = get_debug ? PyObject_CallFunctionObjArgs(get_debug, NULL) : NULL;
	bool silent = is_false(flags) && is_false(callbacks);

	if (flags)
		Py_DecRef(flags);
	return silent;
}

static bool is_dead_end(PyObject *reference)
{
	PyObject *callback = PyObject_GetAttrString(reference, "__callback__");
	bool silent = is_false(callback);

	if (callback)
		Py_DecRef(callback);
	return silent;
}

static bool says_goodbye(PyTypeObject *type)
{
	return PyType_GetSlot(type, SLOT_FINALIZE) || PyType_GetSlot(type, SLOT_DEL);
}

static bool is_silent(PyObject *object)
{
	PyTypeObject *type = python_type(object);

	if (says_goodbye(type) || ((PyType_GetFlags(type) & TYPE_SUBCLASS) && says_goodbye((PyTypeObject *)object)))
		return false;
	if (PyType_IsSubtype(type, &PyModule_Type) ||
	    PyType_IsSubtype(type, &_PyWeakref_ProxyType) || PyType_IsSubtype(type, &_PyWeakref_CallableProxyType))
		return false;
	return !PyType_IsSubtype(type, &_PyWeakref_RefType) || is_dead_end(object);
}

/* The program's own module must be among them: who hides objects from the collector hides that, too. */
static bool are_silent(PyObject *objects, PyObject *module)
{
	ssize_t count = PyList_Size(objects);
	bool silent = true, complete = false;

	for (ssize_t i = 0; silent && i < count; i++) {
		PyObject *object = PyList_GetItem(objects, i);

		if (object == module)
			complete = true;
		else
			silent = object == objects || is_silent(object);
	}
	return silent && complete;
}

bool leavings_are_silent(PyObject *module)
{
	PyObject *objects = get_objects && are_streams_usual() && is_collector_silent() ? PyObject_CallFunctionObjArgs(get_objects, NULL) : NULL;
	bool silent = objects && are_silent(objects, module);

	if (objects)
		Py_DecRef(objects);
	PyErr_Clear();
	return silent;
}
