#include "warm/parked.h"

#include "lib/util.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

__asm__(".pushsection .rodata\n"
	"parked_object: .incbin \"" PARKED_FILE "\"\n"
	"parked_object_end: .byte 0\n"
	".popsection\n");
extern const char parked_object[], parked_object_end[];

int parked_object_make(void)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	int fd = memfd_create("parked", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write_all(fd, parked_object, (size_t)(parked_object_end - parked_object)) < 0 ||
	    fchmod(fd, 0555) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		fatal("cannot store what parked interpreters load");
	return fd;
}
