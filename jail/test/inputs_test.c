/* The list of inputs: order, lookup, bounds, the question whether a directory holds one. */
#include "keeper/stage.h"
#include "test.h"

#include <string.h>

static struct inputs inputs;

static void add(const char *path, bool directory)
{
	CHECK(inputs_add(&inputs, (uint32_t)inputs.count, directory, path, strlen(path), 0) != NULL);
}

/* What the search must answer, found by looking at each. */
static bool is_below(const char *directory)
{
	size_t size = strlen(directory);

	for (size_t i = 0; i < inputs.count; i++)
		if (strncmp(inputs.item[i].path, directory, size) == 0 &&
		    (inputs.item[i].path[size] == '/' || inputs.item[i].path[size] == '\0'))
			return true;
	return false;
}

static void release(void)
{
	for (size_t i = 0; i < inputs.count; i++)
		free(inputs.item[i].path);
	inputs.count = inputs.links = 0;
}

/* Paths of few letters, so that many are beginnings of others; '-' and '.' come before '/', the rest after it. */
static void random_path(char *path)
{
	size_t size = 1 + test_random() % 8;

	for (size_t i = 0; i < size; i++)
		path[i] = "a-./\xff"[test_random() % 5];
	path[size] = '\0';
}

static void finds_what_lies_below(void)
{
	char path[16];

	for (int round = 0; round < 200; round++) {
		for (unsigned i = 0; i < 60; i++) {
			random_path(path);
			add(path, false);
		}
		(void)inputs_sort(&inputs);
		for (unsigned i = 0; i < 200; i++) {
			random_path(path);
			CHECK(inputs_below(&inputs, path) == is_below(path));
		}
		release();
	}
}

void test_inputs(void)
{
	finds_what_lies_below();
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
	CHECK(!inputs_count_link(&inputs));
	release();
	while (inputs_count_link(&inputs))
		;
	CHECK(inputs.links == INPUTS_MAX && inputs_add(&inputs, 1, false, "z", 1, 0) == NULL);
	release();
}
