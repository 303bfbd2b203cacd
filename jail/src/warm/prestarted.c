#include "warm/prestarted.h"

#include "lib/util.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

__asm__(".pushsection .rodata\n"
	"prestarted_object: .incbin \"" PRESTARTED_FILE "\"\n"
	"prestarted_object_end: .byte 0\n"
	".popsection\n");
extern const char prestarted_object[], prestarted_object_end[];

int prestarted_object_make(void)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	int fd = memfd_create("prestarted", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write_all(fd, prestarted_object, (size_t)(prestarted_object_end - prestarted_object)) < 0 ||
	    fchmod(fd, 0555) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		fatal("cannot store the object of pre-started interpreters");
	return fd;
}
