/* wattle cap set, in parts: cap_set.c has the options and limits that stay, cap_run.c those that live as long as a
 * command, cap_limits.c what both do with limits. */
#pragma once

#include "cli/cap_limits.h"

struct cap_set_options {
	double clocks_mhz; // NaN: not given
	int64_t for_ns;    // 0: it stays
	bool quiet;
	const char *devices;
	double watts;         // NaN: not given
	char *const *command; // NULL: none
};

// Adds what the options speak of to open limits.
int cap_set_choose(const struct cap_set_options *options, struct cap_limits *limits, struct wattle_error *reterr);
// One line on stderr: what was set, what was there before, and `rest`.
void cap_set_tell(const struct cap_set_options *options, const struct cap_limits *limits,
	const struct cap_outcome *outcomes, const char *rest);
int cap_set_run(const struct cap_set_options *options); // returns the command's status, as `wattle run`
