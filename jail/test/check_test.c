/* What the host check concludes from texts of the kernel. */
#include "check/check.h"
#include "test.h"

void test_check(void)
{
	CHECK(core_pattern_is_safe("core\n"));
	CHECK(core_pattern_is_safe("/var/cores/core.%p\n"));
	CHECK(core_pattern_is_safe("|/usr/share/apport/apport -p%p -s%s -c%c\n"));
	CHECK(core_pattern_is_safe(""));
	CHECK(!core_pattern_is_safe("@/run/coredump.socket\n"));
	CHECK(!core_pattern_is_safe("@@/run/coredump.socket\n"));
	for (unsigned i = 0; i < kernel_feature_count; i++)
		CHECK(kernel_features[i].probe && kernel_features[i].fix[0] != '\0');
	for (unsigned i = 0; i < group_feature_count; i++)
		CHECK(group_features[i].probe && group_features[i].fix[0] != '\0');
}
