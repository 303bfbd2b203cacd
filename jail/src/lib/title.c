#include "lib/title.h"

#include <string.h>
#include <sys/prctl.h>

static char *area;
static size_t area_size;

void title_remember(int argc, char **argv)
{
	if (argc < 1)
		return;
	area = argv[0];
	/* The kernel stores the arguments contiguously. */
	area_size = (size_t)(argv[argc - 1] - area) + strlen(argv[argc - 1]) + 1;
}

void title_set(const char *title)
{
	if (area_size > 0) {
		memset(area, 0, area_size);
		strncpy(area, title, area_size - 1);
		/* If the last byte is not NUL, the kernel shows only the text before the first NUL. */
		area[area_size - 1] = 1;
	}
	(void)prctl(PR_SET_NAME, title, 0, 0, 0);
}
