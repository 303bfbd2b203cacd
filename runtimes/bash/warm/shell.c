/*
 * A pre-started shell. The dynamic linker loads this object before the shell's own code runs (LD_PRELOAD, ld.so(8)) and
 * calls wait_for_job. The shell has read nothing of its environment by then, so it starts with the environment of its
 * program.
 */
#include "interpreter/prestarted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the variable that made the linker load this object. Other interpreters load the object by themselves. */
static char *find_word(char **envp)
{
	char word[64];

	snprintf(word, sizeof(word), "LD_PRELOAD=/proc/self/fd/%d", FD_OBJECT);
	while (*envp && strcmp(*envp, word) != 0)
		envp++;
	return *envp;
}

static bool is_command(char **argv, char **wanted)
{
	while (*argv && *wanted && strcmp(*argv, *wanted) == 0) {
		argv++;
		wanted++;
	}
	return !*argv && !*wanted;
}

/* The linker and the C library read these before anything here is called. */
static bool comes_too_late(const char *variable)
{
	static const char *const steering[] = {"LD_", "GLIBC_TUNABLES=", "MALLOC_"};

	for (size_t i = 0; i < sizeof(steering) / sizeof(steering[0]); i++)
		if (strncmp(variable, steering[i], strlen(steering[i])) == 0)
			return true;
	return false;
}

/*
 * Copies the environment of the job: a shell may write to it, and the job's memory is read-only and does not stay. NULL:
 * the command must be executed with it.
 */
static char **copy_environment(char **envp)
{
	size_t variables = 0, bytes = 0;
	char **copy, *at;

	for (; envp[variables]; variables++) {
		if (comes_too_late(envp[variables]))
			return NULL;
		bytes += strlen(envp[variables]) + 1;
	}
	copy = malloc((variables + 1) * sizeof(*copy) + bytes);
	if (!copy)
		return NULL;
	at = (char *)(copy + variables + 1);
	for (size_t i = 0; i < variables; i++) {
		copy[i] = at;
		at = stpcpy(at, envp[i]) + 1;
	}
	copy[variables] = NULL;
	return copy;
}

__attribute__((constructor)) static void wait_for_job(int argc, char **argv, char **envp)
{
	char *word = find_word(envp);
	char **environment;
	struct job job;

	(void)argc;
	if (!word)
		return;
	/* Erases the variable: a program can see the memory that holds its first environment. */
	memset(word, 0, strlen(word));
	prestarted_wait(&job);
	environment = is_command(argv, job.argv) ? copy_environment(job.envp) : NULL;
	if (!environment)
		program_execute(&job);
	environ = environment;
	prestarted_begin(&job);
}
