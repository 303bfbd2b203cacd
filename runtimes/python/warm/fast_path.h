/*
 * The program that nearly all copies become: `main.py` alone in its directory, with the command and the environment that
 * the zygote has. For this program nothing has to be checked or changed, and no code of the script has to run.
 */
#ifndef PYTHON_FAST_PATH_H
#define PYTHON_FAST_PATH_H

#include "init/confine.h"
#include "init/program.h"

#include <stdio.h>

#define MAIN_NAME "main.py"
#define MAIN_PATH JOB_DIRECTORY "/" MAIN_NAME

/* `items`: of the usual job. Returns its program, open; NULL when the job is another, or when that is not certain. */
FILE *fast_path_open(const struct job *job, const char *items, size_t size);

#endif
