/*
 * Runs a file as `python3 file` does. The interpreter itself runs it, reports what is uncaught, and ends: threads, atexit,
 * output, finalizers, modules.
 */
#include "run.h"

#include "early_end.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS_FLUSH_FAILED 120 /* as Python's own */

static void flush(const char *name)
{
	PyObject *stream = PySys_GetObject(name), *result = stream ? PyObject_CallMethod(stream, "flush", NULL) : NULL;

	if (result)
		Py_DecRef(result);
}

void python_rehearse(void)
{
	/* No class, import or error: these would leave something. */
	static char program[] = "def f(a, *b, c=1): return [n for n in b if n]\n"
				"print(*f(1, [[]])[:0], repr([[]])[:0], end='')\n";
	FILE *file = fmemopen(program, strlen(program), "r");
	PyObject *globals = PyDict_New(), *result = NULL;

	if (file && globals)
		result = PyRun_FileExFlags(file, "", PYTHON_FILE_INPUT, globals, globals, 1, NULL);
	if (result)
		Py_DecRef(result);
	if (globals) {
		/* The function refers back to the dictionary. */
		PyDict_Clear(globals);
		Py_DecRef(globals);
	}
	flush("stderr");
	flush("stdout");
	PyErr_Clear();
}

/* Ends by the signal itself, as Python does, so that the parent process sees the interrupt. */
static int end_by_interrupt(void)
{
	(void)signal(SIGINT, SIG_DFL);
	(void)kill(getpid(), SIGINT);
	return 128 + SIGINT;
}

_Noreturn void python_run(FILE *file, const char *path)
{
	bool interrupted;
	int status;

	/* Does not return after a SystemExit, which ends the process in the same way. */
	status = PyRun_SimpleFileExFlags(file, path, 1, NULL) == 0 ? 0 : 1;
	interrupted = status != 0 && PySys_GetObject("last_type") == PyExc_KeyboardInterrupt;

	if (!interrupted)
		early_end_allow(status);
	if (Py_FinalizeEx() < 0)
		status = STATUS_FLUSH_FAILED;
	exit(interrupted ? end_by_interrupt() : status);
}
