#include "lib/step.h"

#include "lib/util.h"

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
