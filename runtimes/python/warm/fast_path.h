/*
 * The program that nearly all copies become: `main.py` alone in its directory, with the command and
 * the environment that the zygote has. For that one nothing has to be looked at or changed, and no
 * code of the script has to run.
 */
#ifndef PYTHON_FAST_PATH_H
#define PYTHON_FAST_PATH_H

#include "init/confine.h"
#include "init/program.h"

#include <stdio.h>

#define MAIN_NAME "main.py"
#define MAIN_PATH JOB_DIRECTORY "/" MAIN_NAME

/* `items`: of the usual job. Its program, open; NULL when the job is another, or this cannot be told. */
FILE *fast_path_open(const struct job *job, const char *items, size_t size);

#endif
