/*
 * The program that nearly all copies become: `main.py` alone in its directory, with the command and
 * the environment that the zygote has. For that one nothing has to be looked at or changed, and no
 * code of the script has to run.
 */
#ifndef ZYGOTE_USUAL_H
#define ZYGOTE_USUAL_H

#include "init/confine.h"
#include "init/program.h"

#include <stdio.h>

#define USUAL_NAME "main.py"
#define USUAL_PATH JOB_DIRECTORY "/" USUAL_NAME

/* `items`: of the usual job. Its program, open; NULL when the job is another, or this cannot be told. */
FILE *usual_open(const struct job *job, const char *items, size_t size);

#endif
