/* wattled's command line. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct helper_options {
	const char *socket, *sysfs, *procfs, *nvml, *state, *policy; // borrowed from argv; NULL: the default
	bool help, version;
};

int helper_options_parse(int argc, char **argv, struct helper_options *ret_options, struct wattle_error *reterr);
extern const char helper_help[];
