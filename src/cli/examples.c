#include "cli/help.h"

#include "base/util.h"

#include <string.h>

static const struct example examples[] = {
#define EXAMPLE(command, line, meaning) {command, line, meaning},
#include "cli/examples.def"
#undef EXAMPLE
};

const struct example *example_next(const char *command, bool of_parts, size_t *at)
{
	size_t length = strlen(command);
	while (*at < ARRAY_SIZE(examples)) {
		const struct example *example = &examples[(*at)++];
		bool is_own = strcmp(example->command, command) == 0;
		bool is_of_part = strncmp(example->command, command, length) == 0 && example->command[length] == ' ';
		if (is_own || (of_parts && is_of_part))
			return example;
	}
	return NULL;
}
