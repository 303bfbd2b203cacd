/* The part of Python's C interface that is used: all of it public, and the same since Python 3.9. */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct python_object PyObject;
typedef struct python_thread PyThreadState;
typedef struct python_interpreter PyInterpreterState;

typedef struct {
	void *context;
	void *(*allocate)(void *context, size_t size);
	void (*free)(void *context, void *memory, size_t size);
} PyObjectArenaAllocator;

#define PYTHON_FILE_INPUT 257

extern PyObject *PyExc_KeyboardInterrupt;

PyInterpreterState *PyInterpreterState_Get(void);
PyThreadState *PyThreadState_Get(void);
PyThreadState *PyThreadState_New(PyInterpreterState *interpreter);
void PyThreadState_Clear(PyThreadState *state);
void PyThreadState_Delete(PyThreadState *state);
void PyThreadState_DeleteCurrent(void);
void PyEval_RestoreThread(PyThreadState *state);

void PyObject_GetArenaAllocator(PyObjectArenaAllocator *allocator);
void PyObject_SetArenaAllocator(PyObjectArenaAllocator *allocator);

PyObject *PyBytes_FromStringAndSize(const char *bytes, ssize_t size);
ssize_t PyBytes_Size(PyObject *bytes);
char *PyBytes_AsString(PyObject *bytes);
long PyLong_AsLong(PyObject *number);
PyObject *PyDict_New(void);
void PyDict_Clear(PyObject *dict);
PyObject *PyDict_Copy(PyObject *dict);
ssize_t PyDict_Size(PyObject *dict);
int PyDict_Next(PyObject *dict, ssize_t *position, PyObject **key, PyObject **value);
PyObject *PyDict_GetItem(PyObject *dict, PyObject *key);
int PyDict_SetItem(PyObject *dict, PyObject *key, PyObject *value);
PyObject *PyImport_GetModuleDict(void);
PyObject *PyImport_AddModule(const char *name);
PyObject *PyImport_ImportModule(const char *name);
PyObject *PyObject_GetAttrString(PyObject *object, const char *name);
int PyObject_HasAttrString(PyObject *object, const char *name);
PyObject *PyModule_GetDict(PyObject *module);
PyObject *PyCapsule_New(void *pointer, const char *name, void (*destroy)(PyObject *capsule));
PyObject *PyObject_Type(PyObject *object);
ssize_t PyList_Size(PyObject *list);
PyObject *PyList_GetItem(PyObject *list, ssize_t position);
PyObject *PyObject_CallFunctionObjArgs(PyObject *callable, ...);
PyObject *PyObject_CallMethod(PyObject *object, const char *name, const char *format, ...);
int PyObject_IsTrue(PyObject *object);
PyObject *PySys_GetObject(const char *name);
int PySys_SetObject(const char *name, PyObject *object);
void Py_IncRef(PyObject *object);
void Py_DecRef(PyObject *object);

void PyErr_Print(void);
void PyErr_Clear(void);

PyObject *PyRun_FileExFlags(FILE *file, const char *name, int start, PyObject *globals, PyObject *locals,
			    int close_it, void *flags);
int PyRun_SimpleFileExFlags(FILE *file, const char *name, int close_it, void *flags);
int Py_FinalizeEx(void);

#endif
