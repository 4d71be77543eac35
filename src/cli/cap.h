/* The limits of `wattle cap set` and `cap reset`: devices by name, values, and current holders. */
#pragma once

#include "base/env.h"
#include "cap/lease.h"

enum { CAP_LIMITS_MAX = 64 };

struct cap_limit {
	struct cap_device *device; // owned by the device list
	double value;              // W or MHz
	struct cap_hold *hold;     // owned; NULL: not held
};

struct cap_limits {
	struct wattle_env env;
	struct cap_devices devices;
	struct cap_holder holder;
	struct cap_guard *guard; // shared by all holds
	struct cap_limit at[CAP_LIMITS_MAX];
	size_t n;
};

// `owner`: name of this program as shown to users. *limits is valid also after a failure.
int cap_limits_open(struct cap_limits *limits, const char *owner, struct wattle_error *reterr);
void cap_limits_close(struct cap_limits *limits);
// Adds devices: "gpu-0", "gpu-0,gpu-1", "gpus" (those visible to this program); each device once. Errors have a message.
int cap_limits_add(struct cap_limits *limits, const char *names, enum cap_kind what, double value,
	struct wattle_error *reterr);

// Sets all limits or none. *ret_outcomes has space for limits->n.
int cap_limits_acquire(struct cap_limits *limits, struct cap_outcome *ret_outcomes, struct wattle_error *reterr);
// Ends the holds. Messages for the user go to stderr.
void cap_limits_end(struct cap_limits *limits);

/* The modules of wattle cap set: cap_set.c has the options and persistent limits, cap_run.c limits for the duration of a
 * command, cap_limits.c what both share. */

struct cap_set_options {
	double clocks_mhz; // NaN: not given
	int64_t for_ns;    // 0: persistent
	bool quiet;
	const char *devices;
	double watts;         // NaN: not given
	char *const *command; // NULL: none
};

// Adds the devices and values of the options to open limits.
int cap_set_choose(const struct cap_set_options *options, struct cap_limits *limits, struct wattle_error *reterr);
// Prints one line on stderr: the limits that were set, the previous limits, and `rest`.
void cap_set_print(const struct cap_set_options *options, const struct cap_limits *limits,
	const struct cap_outcome *outcomes, const char *rest);
int cap_set_run(const struct cap_set_options *options); // returns the command's status, as `wattle run` does
