/* wattled's command line. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct helper_options {
	const char *socket, *sysfs, *procfs, *nvml, *state, *policy; // borrowed from argv; NULL: the default
	bool help, version, manual;
};

int helper_options_parse(int argc, char **argv, struct helper_options *ret_options, struct wattle_error *reterr);

struct buf;
void helper_help(struct buf *out);
void helper_manual(struct buf *out); // a manual page, from the same table
