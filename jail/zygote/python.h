/* The part of Python's C interface that is used: all of it public, and but for dicts the same since Python 3.9. */
#ifndef ZYGOTE_PYTHON_H
#define ZYGOTE_PYTHON_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct python_type PyTypeObject;
typedef struct {
	ssize_t references;
	PyTypeObject *type;
} PyObject;
typedef struct python_thread PyThreadState;
typedef struct python_interpreter PyInterpreterState;

/* As in 3.11, which the zygotes' script insists on. */
typedef struct {
	ssize_t references;
	void *type;
	ssize_t used;
	uint64_t version;
	void *keys, *values;
} PyDictObject;

typedef struct {
	void *context;
	void *(*allocate)(void *context, size_t size);
	void (*free)(void *context, void *memory, size_t size);
} PyObjectArenaAllocator;

#define PYTHON_FILE_INPUT 257

extern PyObject _Py_NoneStruct;
extern PyObject *PyExc_SystemExit, *PyExc_KeyboardInterrupt;
extern PyTypeObject PyModule_Type, _PyWeakref_RefType, _PyWeakref_ProxyType, _PyWeakref_CallableProxyType;

PyInterpreterState *PyInterpreterState_Get(void);
PyThreadState *PyThreadState_Get(void);
PyThreadState *PyThreadState_New(PyInterpreterState *interpreter);
void PyThreadState_Clear(PyThreadState *state);
void PyThreadState_Delete(PyThreadState *state);
void PyThreadState_DeleteCurrent(void);
PyThreadState *PyInterpreterState_ThreadHead(PyInterpreterState *interpreter);
PyThreadState *PyThreadState_Next(PyThreadState *state);
void PyEval_RestoreThread(PyThreadState *state);

void PyObject_GetArenaAllocator(PyObjectArenaAllocator *allocator);
void PyObject_SetArenaAllocator(PyObjectArenaAllocator *allocator);

PyObject *PyBytes_FromStringAndSize(const char *bytes, ssize_t size);
ssize_t PyBytes_Size(PyObject *bytes);
char *PyBytes_AsString(PyObject *bytes);
long PyLong_AsLong(PyObject *number);
PyObject *PyDict_New(void);
int PyDict_Next(PyObject *dict, ssize_t *position, PyObject **key, PyObject **value);
PyObject *PyDict_GetItem(PyObject *dict, PyObject *key);
int PyDict_SetItem(PyObject *dict, PyObject *key, PyObject *value);
PyObject *PyDict_GetItemString(PyObject *dict, const char *key);
int PyDict_DelItem(PyObject *dict, PyObject *key);
int PyDict_DelItemString(PyObject *dict, const char *key);
ssize_t PyList_Size(PyObject *list);
PyObject *PyList_GetItem(PyObject *list, ssize_t index);
PyObject *PyCapsule_New(void *pointer, const char *name, void (*destructor)(PyObject *));
PyObject *PyImport_GetModuleDict(void);
PyObject *PyImport_AddModule(const char *name);
PyObject *PyModule_GetDict(PyObject *module);
PyObject *PyObject_GetAttrString(PyObject *object, const char *name);
PyObject *PyObject_CallFunctionObjArgs(PyObject *callable, ...);
PyObject *PyObject_CallMethod(PyObject *object, const char *name, const char *format, ...);
int PyObject_IsTrue(PyObject *object);
PyObject *PySys_GetObject(const char *name);
int PySys_SetObject(const char *name, PyObject *value);
void Py_IncRef(PyObject *object);
void Py_DecRef(PyObject *object);

int PyErr_ExceptionMatches(PyObject *exception);
void PyErr_Fetch(PyObject **type, PyObject **value, PyObject **trace);
void PyErr_Restore(PyObject *type, PyObject *value, PyObject *trace);
void PyErr_NormalizeException(PyObject **type, PyObject **value, PyObject **trace);
void PyErr_Print(void);
void PyErr_Clear(void);
void PyErr_WriteUnraisable(PyObject *where);

unsigned long PyType_GetFlags(PyTypeObject *type);
void *PyType_GetSlot(PyTypeObject *type, int slot);
int PyType_IsSubtype(PyTypeObject *type, PyTypeObject *base);

PyObject *PyRun_FileExFlags(FILE *file, const char *name, int start, PyObject *globals, PyObject *locals,
			    int close_it, void *flags);
int PyGC_Enable(void);
ssize_t PyGC_Collect(void);
int Py_FinalizeEx(void);

/* Without a reference: that would make the page of the type, which is shared, the process's own. */
static inline PyTypeObject *python_type(const PyObject *object)
{
	return object->type;
}

/* What is in one is in the other afterwards. */
static inline void python_exchange_dicts(PyObject *one, PyObject *other)
{
	PyDictObject *a = (PyDictObject *)one, *b = (PyDictObject *)other, kept = *a;

	a->used = b->used;
	a->keys = b->keys;
	a->values = b->values;
	b->used = kept.used;
	b->keys = kept.keys;
	b->values = kept.values;
}

#endif
