#include "keeper/watch.h"

#include "lib/step.h"

#define TO(phase) (1u << (phase))

static const unsigned transitions[] = {
	[PHASE_STARTING] = TO(PHASE_EXECUTING) | TO(PHASE_OVER),
	[PHASE_EXECUTING] = TO(PHASE_PAUSED) | TO(PHASE_OVER),
	[PHASE_PAUSED] = TO(PHASE_EXECUTING) | TO(PHASE_OVER),
	[PHASE_OVER] = 0,
};

void watch_enter(struct watch *w, enum phase phase)
{
	if (!(transitions[w->phase] & TO(phase)))
		__builtin_trap();
	w->phase = phase;
}

void watch_end(struct watch *w, enum ending ending, int error)
{
	if (w->phase == PHASE_OVER)
		return;
	watch_enter(w, PHASE_OVER);
	w->ending = ending;
	w->failed_error = error;
}

void watch_kill(struct watch *w, enum cause cause)
{
	if (w->phase == PHASE_OVER)
		return;
	w->result->cause = cause;
	watch_end(w, ENDING_LIMIT, 0);
}

const char *watch_error(const struct watch *w, enum error_code *code)
{
	static const struct {
		enum error_code code;
		const char *text;
	} errors[] = {
		[ENDING_BAD_FRAME] = {ERROR_PROTOCOL, "invalid frame"},
		[ENDING_FREEZER] = {ERROR_INTERNAL, "the run cannot be stopped or continued"},
		[ENDING_COUNTERS] = {ERROR_INTERNAL, "cannot read the counters of the run"},
		[ENDING_INIT_LOST_EARLY] = {ERROR_SETUP, "the jail's first process was lost"},
		[ENDING_INIT_LOST] = {ERROR_INTERNAL, "the jail's first process was lost"},
	};

	if (w->ending == ENDING_SETUP) {
		*code = ERROR_SETUP;
		return step_text(w->failed_step);
	}
	*code = errors[w->ending].code;
	return errors[w->ending].text;
}
