#include "test.h"

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"frame", test_frame}, {"hash", test_hash}, {"inputs", test_inputs}, {"stage", test_stage}, {"listing", test_listing},
	{"policy", test_policy}, {"verdict", test_verdict}, {"text", test_text}, {"tasks", test_tasks},
	{"freezer", test_freezer}, {"clock", test_clock}, {"conn", test_conn}, {"check", test_check},
	{"locks", test_locks}, {"network", test_network}, {"channel", test_channel}, {"zygote_wire", test_zygote_wire},
	{"timestamp", test_timestamp}, {"harvest", test_harvest}, {"cgroup", test_cgroup},
};

unsigned test_random(void)
{
	static unsigned long long state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 16);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		tests[i].run();
		printf("ok %s\n", tests[i].name);
	}
	return 0;
}
