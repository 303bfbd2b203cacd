/* Gives a target the files of the directories that it is called with: no fuzzer is needed. */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>

static void replay(const char *directory, const char *name)
{
	char path[4096];
	uint8_t *data;
	FILE *file;
	long size;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	PROMISE(file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0);
	rewind(file);
	/* Exactly as large, so that a byte too far is seen. */
	data = malloc((size_t)size);
	PROMISE((data || size == 0) && fread(data, 1, (size_t)size, file) == (size_t)size);
	fclose(file);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
}

int main(int argc, char **argv)
{
	unsigned count = 0;

	for (int i = 1; i < argc; i++) {
		DIR *directory = opendir(argv[i]);
		struct dirent *entry;

		PROMISE(directory != NULL);
		while ((entry = readdir(directory)))
			if (entry->d_name[0] != '.') {
				replay(argv[i], entry->d_name);
				count++;
			}
		closedir(directory);
	}
	PROMISE(count > 0);
	printf("ok %s, %u inputs\n", strrchr(argv[0], '/') + 1, count);
	return 0;
}
