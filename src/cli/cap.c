/* wattle cap: limits of power and clocks; each verb is a command of its own, in cap_*.c. */
#include "cli/command.h"

#include "base/util.h"

#include <string.h>

static const struct command *const verbs[] = {&command_cap_list, &command_cap_get, &command_cap_set, &command_cap_reset,
	&command_cap_tune};

static int run(const struct command *command, int argc, char **argv)
{
	void *config;
	int first, status;
	for (size_t i = 0; argc > 0 && i < ARRAY_SIZE(verbs); i++)
		if (strcmp(argv[0], verbs[i]->name + strlen("cap ")) == 0)
			return verbs[i]->run(verbs[i], argc - 1, argv + 1);
	if (!cli_parse(command, argc, argv, NULL, &first, &config, EXIT_USAGE, &status)) // --help
		return status;
	if (argc == 0)
		return cli_usage(command, EXIT_USAGE, "a word is missing");
	return cli_usage(command, EXIT_USAGE, "'%s' is none of its words", argv[0]);
}

const struct command command_cap = {
	.name = "cap",
	.usage = "list|get|set|reset|tune …",
	.summary = "power limits: of GPUs and CPU packages, and clocks of NVIDIA GPUs",
	.details =
		"DEVICE is a name that the list shows (gpu-0, package-0), or a GPU's UUID or an unambiguous beginning of it.\n"
		"GPUs have the numbers that they have in `wattle sensors`.",
	.parts = verbs,
	.n_parts = ARRAY_SIZE(verbs),
	.run = run,
};
