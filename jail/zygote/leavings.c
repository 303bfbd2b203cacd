/*
 * Looks at the objects that the collector of garbage knows and that are not the zygote's. Whoever makes a class, loads a
 * module, or has something open leaves one that speaks: an object that its type says good-bye for (__del__, generators,
 * coroutines, files, sockets, tasks), a type or module of its own, a weak reference that calls back. All others are data.
 */
#include "leavings.h"

#define TYPE_SUBCLASS (1ul << 31) /* Py_TPFLAGS_TYPE_SUBCLASS */
#define SLOT_DEL 53		  /* Py_tp_del */
#define SLOT_FINALIZE 80	  /* Py_tp_finalize */

/* Of the module gc, as it was before the program. */
static PyObject *get_objects, *get_debug, *callbacks;

void leavings_prepare(void)
{
	PyObject *gc = PyDict_GetItemString(PyImport_GetModuleDict(), "gc");

	if (gc) {
		get_objects = PyObject_GetAttrString(gc, "get_objects");
		get_debug = PyObject_GetAttrString(gc, "get_debug");
		callbacks = PyObject_GetAttrString(gc, "callbacks");
	}
	PyErr_Clear();
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

static bool is_silent(PyObject *object)
{
	PyTypeObject *type = python_type(object);

	if (PyType_GetSlot(type, SLOT_FINALIZE) || PyType_GetSlot(type, SLOT_DEL))
		return false;
	if ((PyType_GetFlags(type) & TYPE_SUBCLASS) || PyType_IsSubtype(type, &PyModule_Type) ||
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
	PyObject *objects = get_objects && is_collector_silent() ? PyObject_CallFunctionObjArgs(get_objects, NULL) : NULL;
	bool silent = objects && are_silent(objects, module);

	if (objects)
		Py_DecRef(objects);
	PyErr_Clear();
	return silent;
}
