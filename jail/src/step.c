#include "step.h"

#include "util.h"

#include <errno.h>

static const char *const texts[] = {
	"none",
#define X(name, text) text,
	JAIL_STEPS(X)
#undef X
};

const char *step_text(int step)
{
	return step >= 0 && (size_t)step < COUNT(texts) ? texts[step] : "unknown";
}

#ifdef JAIL_FAULTS
static int failing;

void step_make_fail(int step)
{
	failing = step;
}

int step_fails(enum step step)
{
	if ((int)step != failing)
		return 0;
	errno = EIO;
	return 1;
}
#endif
