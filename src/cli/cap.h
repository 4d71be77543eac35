/* Which limits `wattle cap set` and `cap reset` speak of: devices by their names, and who holds them. */
#pragma once

#include "base/env.h"
#include "cap/lease.h"

enum { CAP_LIMITS_MAX = 64 };

struct cap_limit {
	struct cap_device *device; // the devices' own
	double value;              // W or MHz
	struct cap_hold *hold;     // owned; NULL: none
};

struct cap_limits {
	struct wattle_env env;
	struct cap_devices devices;
	struct cap_holder holder;
	struct cap_guard *guard; // of all holds
	struct cap_limit at[CAP_LIMITS_MAX];
	size_t n;
};

// `owner`: what people know us by. Valid in any case.
int cap_limits_open(struct cap_limits *limits, const char *owner, struct wattle_error *reterr);
void cap_limits_close(struct cap_limits *limits);
// "gpu-0", "gpu-0,gpu-1", "gpus" (those that this program is shown); each once. With a sentence.
int cap_limits_add(struct cap_limits *limits, const char *names, enum cap_what what, double value,
	struct wattle_error *reterr);

// All or none. *ret_outcomes has room for limits->n.
int cap_limits_hold(struct cap_limits *limits, struct cap_outcome *ret_outcomes, struct wattle_error *reterr);
// Whatever people should know of how that ended goes to stderr.
void cap_limits_end(struct cap_limits *limits);

/* wattle cap set, in parts: cap_set.c has the options and limits that stay, cap_run.c those that live as long as a
 * command, cap_limits.c what both do with limits. */

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
