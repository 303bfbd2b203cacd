/* Which statistics of a network namespace say that it is empty: nothing but a plain zero does. */
#include "network.h"
#include "test.h"

void test_network(void)
{
	CHECK(network_text_is_empty("sockets: used 0\nTCP: inuse 0 orphan 0 tw 0 alloc 51 mem 0\n"));
	CHECK(!network_text_is_empty("sockets: used 1\n"));
	CHECK(!network_text_is_empty("sockets: used 01\n"));
	CHECK(!network_text_is_empty("sockets: used 0"));
	CHECK(!network_text_is_empty("sockets: used -1\n"));
	CHECK(!network_text_is_empty(" sockets: used 0\n"));
	CHECK(!network_text_is_empty("TCP: inuse 0\nsockets: used 0\n"));
	CHECK(!network_text_is_empty(""));
}
