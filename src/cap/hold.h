/* A limit that somebody holds, whichever way it is done: by this process, or by the helper where this process may not.
 * What `wattle cap`, the library and the tuner use. */
#pragma once

#include "cap/device.h"
#include "cap/lease.h"

struct cap_hold;

struct cap_holder {
	const struct wattle_env *env; // borrowed
	struct cap_owner owner;
	struct cap_guard_program guard;
};

/* Fills in, for devices that this process may not set, whether the helper would (settable, why, remedy), and who has a
 * lease. With the helper away or refusing, they stay as they are, with a remedy that names it. */
void cap_holds_describe(const struct cap_holder *holder, struct cap_devices *devices);

int cap_hold_open(const struct cap_holder *holder, struct cap_device *device, struct cap_hold **ret_hold,
	struct wattle_error *reterr);
int cap_hold_set(struct cap_hold *hold, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
int cap_hold_check(struct cap_hold *hold,
	struct cap_outcome *ret_outcome);     // as cap_lease_check; -EPIPE: the helper died
int cap_hold_fd(const struct cap_hold *hold); // readable: call cap_hold_check. -1: none
int cap_hold_end(struct cap_hold *hold, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
void cap_hold_disown(struct cap_hold *hold); // in a forked child, as cap_lease_disown; NULL allowed
int cap_hold_keep(struct cap_hold *hold, struct wattle_error *reterr);
bool cap_hold_is_helped(const struct cap_hold *hold);

// The limits that stay, likewise by ourselves or by the helper.
int cap_hold_stand(const struct cap_holder *holder, struct cap_device *device, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
// Ends the limit for some time that this process has just set, and nothing else.
int cap_hold_end_timed(const struct cap_holder *holder, struct cap_device *device, struct wattle_error *reterr);
int cap_hold_reset(const struct cap_holder *holder, struct cap_device *device, bool to_default,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
