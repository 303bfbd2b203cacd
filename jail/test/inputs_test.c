/* The list of inputs: order, lookup, the question whether a directory holds one. */
#include "stage.h"
#include "test.h"

#include <string.h>

static struct inputs inputs;

static void add(const char *path, bool directory)
{
	CHECK(inputs_add(&inputs, (uint32_t)inputs.count, directory, path, strlen(path), 0) != NULL);
}

void test_inputs(void)
{
	add("b/c", false);
	add(".hidden/x/y", false);
	add("a", false);
	add("dir", true);
	CHECK(inputs_sort(&inputs));
	CHECK(inputs_find(&inputs, "a") && inputs_find(&inputs, "b/c") && inputs_find(&inputs, "dir"));
	CHECK(!inputs_find(&inputs, "b") && !inputs_find(&inputs, "aa") && !inputs_find(&inputs, ""));
	CHECK(inputs_below(&inputs, ".hidden") && inputs_below(&inputs, ".hidden/x") && inputs_below(&inputs, "dir"));
	CHECK(!inputs_below(&inputs, ".hid") && !inputs_below(&inputs, ".hidden/x/y/z") && !inputs_below(&inputs, "b/d"));
	add("a", false);
	CHECK(!inputs_sort(&inputs));
	while (inputs.count < INPUTS_MAX)
		add("z", false);
	CHECK(inputs_add(&inputs, 1, false, "z", 1, 0) == NULL);
	for (size_t i = 0; i < inputs.count; i++)
		free(inputs.item[i].path);
}
