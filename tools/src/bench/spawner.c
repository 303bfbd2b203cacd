/*
 * The bare side of the comparison: starts one command after the other. Measures each from just before it is started until
 * it has ended and all its output is read. Standard input: one command per line, words separated by US (0x1f). Answer:
 * "<wall ns> <cpu us> <exit status>" per line. Usage: spawner ROOT; ROOT becomes the root directory. An empty /tmp of its
 * own is the working directory, so that commands that write leave nothing. Needs root.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORDS 64

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t micros(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void run(char *const words[], int null)
{
	posix_spawn_file_actions_t actions;
	struct rusage usage;
	char buffer[65536];
	int output[2], status;
	pid_t child;
	uint64_t start;

	if (pipe2(output, O_CLOEXEC) < 0)
		die("pipe2");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, null, 0);
	posix_spawn_file_actions_adddup2(&actions, output[1], 1);
	posix_spawn_file_actions_adddup2(&actions, output[1], 2);
	start = now_ns();
	if (posix_spawn(&child, words[0], &actions, NULL, words, environ) != 0)
		die(words[0]);
	close(output[1]);
	while (read(output[0], buffer, sizeof buffer) > 0)
		;
	if (wait4(child, &status, 0, &usage) < 0)
		die("wait4");
	printf("%llu %llu %d\n", (unsigned long long)(now_ns() - start),
	       (unsigned long long)(micros(usage.ru_utime) + micros(usage.ru_stime)), status);
	fflush(stdout);
	close(output[0]);
	posix_spawn_file_actions_destroy(&actions);
}

int main(int argc, char **argv)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	if (argc != 2 || null < 0 || unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("spawner");
	if (chroot(argv[1]) < 0 || mount("none", "/tmp", "tmpfs", 0, NULL) < 0 || chdir("/tmp") < 0)
		die(argv[1]);
	while ((length = getline(&line, &size, stdin)) > 0) {
		char *words[MAX_WORDS + 1], *rest = line;
		int count = 0;

		line[length - 1] = '\0';
		while (count < MAX_WORDS && rest)
			words[count++] = strsep(&rest, "\x1f");
		words[count] = NULL;
		run(words, null);
	}
	free(line);
	return 0;
}
