/*
 * Swaps names in a directory for each other as fast as it can, until it is killed: swapper DIRECTORY A B [A B ...].
 * It stands for a process of a run that was not killed, with more power than any: it is root, outside of the jail.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int directory;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 4 || (directory = open(argv[1], O_RDONLY | O_DIRECTORY)) < 0)
		return 2;
	for (;;) {
		for (int i = 2; i + 1 < argc; i += 2)
			(void)renameat2(directory, argv[i], directory, argv[i + 1], RENAME_EXCHANGE);
		usleep(50);
	}
}
