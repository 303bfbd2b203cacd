/*
 * Runs on the launcher's machine and makes the memory of a guest that is saved: a file without a name. A process of any user may open it once the
 * launcher has passed it the descriptor. The program prints the descriptor's number and a newline; the launcher opens the file by this number.
 * When the input ends, the program seals the file: nobody can change it any more, not even a process that has it open for writing. The file is
 * gone with its last descriptor (memfd_create(2), F_ADD_SEALS in fcntl(2)).
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

/* A machine may refuse files without MFD_NOEXEC_SEAL (vm.memfd_noexec); kernels before 6.3 do not know it. */
static int open_memory(void)
{
	int fd = memfd_create("microvm", MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create("microvm", MFD_ALLOW_SEALING) : fd;
}

int main(void)
{
	int fd = open_memory();
	char byte;

	if (fd < 0)
		err(1, "memory");
	printf("%d\n", fd);
	if (fflush(stdout))
		err(1, "output");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		err(1, "sealing");
	return 0;
}
