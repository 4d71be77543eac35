/* The ways in which a limit can be held. Implemented by hold_own.c (this process writes) and hold_helped.c (the helper
 * does); hold.c asks them in this order, and takes the first that would do it. */
#pragma once

#include "cap/hold.h"

struct hold_ops {
	/* Fills in for devices that are not settable so far whether this way would do, or what would make it; and
	 * `lease` where it knows of one that our own journal does not. NULL: it has nothing to add. */
	void (*describe)(const struct cap_holder *holder, struct cap_devices *devices);
	// Whether this way would change that device, as far as can be told without a change.
	bool (*would)(const struct cap_holder *holder, const struct cap_device *device);
	// As cap_hold_open and so on. `state` is the way's own.
	int (*open)(const struct cap_holder *holder, struct cap_device *device, void **ret_state,
		struct wattle_error *reterr);
	int (*set)(void *state, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
	int (*check)(void *state, struct cap_outcome *ret_outcome);
	int (*fd)(const void *state);
	int (*end)(void *state, struct cap_outcome *ret_outcome, struct wattle_error *reterr); // frees state
	int (*keep)(void *state, struct wattle_error *reterr);                                 // frees state
	void (*disown)(void *state);                                                           // frees state
	int (*stand)(const struct cap_holder *holder, struct cap_device *device, double value, int64_t for_ns,
		struct cap_outcome *ret_outcome, struct wattle_error *reterr);
	// Ends a limit for some time before its hour; a limit that stands below it stays.
	int (*end_timed)(const struct cap_holder *holder, struct cap_device *device, struct wattle_error *reterr);
	int (*reset)(const struct cap_holder *holder, struct cap_device *device, bool to_default,
		struct cap_outcome *ret_outcome, struct wattle_error *reterr);
};

extern const struct hold_ops hold_own, hold_helped;
