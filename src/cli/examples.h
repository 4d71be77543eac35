/* The examples of examples.def, by command. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct example {
	const char *command, *line, *meaning;
};
// The next one of a command from *at on; NULL: no more. of_parts: of "cap set" for "cap" as well. Begin with *at = 0.
const struct example *example_next(const char *command, bool of_parts, size_t *at);
