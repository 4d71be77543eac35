/* The lease of a guard that is an owner itself, until its hour comes. */
#pragma once

#include "cap/lease.h"

// As cap_lease_open. timed: the journal says so, and `cap reset` may end it by SIGTERM.
int lease_open_as(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner, bool timed,
	const struct cap_guard_program *guard, struct cap_lease **ret_lease, struct wattle_error *reterr);
