/* wattle cap: power and clock limits; each verb is a command of its own, in cap_*.c. */
#include "cli/command.h"

#include "base/util.h"

static const struct command *const verbs[] = {&command_cap_list, &command_cap_get, &command_cap_set, &command_cap_reset,
	&command_cap_tune};

const struct command command_cap = {
	.name = "cap",
	.usage = "list|get|set|reset|tune …",
	.summary = "show and set power limits of GPUs and CPU packages, and clock limits of NVIDIA GPUs",
	.details =
		"DEVICE is a name from `wattle cap list` (gpu-0, package-0), or a GPU's UUID or a unique "
		"prefix of it.\nGPUs are numbered as in `wattle sensors`.",
	.parts = verbs,
	.n_parts = ARRAY_SIZE(verbs),
	.run = cli_run_part,
};
