#include "keeper/pulse.h"

#include "lib/util.h"

#include <sys/mman.h>

#define ROW_ENDS_US 5000000 /* a series of failures ends after this time without one */

struct pulse {
	uint64_t beat_us, failed_us, failing_since_us;
};

static struct pulse *shared;

static uint64_t get(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static void set(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

static uint32_t ms_since(uint64_t then_us)
{
	uint64_t now = monotonic_us();

	return now > then_us ? (uint32_t)((now - then_us) / 1000) : 0;
}

static bool in_a_row(uint64_t failed_us)
{
	return failed_us != 0 && monotonic_us() - failed_us < ROW_ENDS_US;
}

void pulse_open(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fatal("cannot share memory with keepers");
	pulse_beat();
}

void pulse_beat(void)
{
	set(&shared->beat_us, monotonic_us());
}

void pulse_failed(void)
{
	uint64_t now = monotonic_us();

	if (!in_a_row(get(&shared->failed_us)))
		set(&shared->failing_since_us, now);
	set(&shared->failed_us, now);
}

int pulse_keep(void)
{
	return mprotect(shared, sizeof(*shared), PROT_READ) < 0 ? -1 : madvise(shared, sizeof(*shared), MADV_DONTFORK);
}

uint32_t pulse_silent_ms(void)
{
	return ms_since(get(&shared->beat_us));
}

uint32_t pulse_failing_ms(void)
{
	return in_a_row(get(&shared->failed_us)) ? ms_since(get(&shared->failing_since_us)) : 0;
}
