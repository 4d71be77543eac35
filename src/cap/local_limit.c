/* Limits set directly: a lease of this process. */
#include "cap/internal.h"

static bool can_set(const struct cap_holder *holder, const struct cap_device *device)
{
	return device->settable && !device->is_remote;
}

static int open_own(const struct cap_holder *holder, struct cap_device *device, void **ret_state,
	struct wattle_error *reterr)
{
	struct cap_lease *lease;
	int r = cap_lease_open(holder->env, device, &holder->owner, &holder->guard, &lease, reterr);
	if (r == 0)
		*ret_state = lease;
	return r;
}

static int set(void *state, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	return cap_lease_set(state, value, ret_outcome, reterr);
}

static int check(void *state, struct cap_outcome *ret_outcome)
{
	return cap_lease_check(state, ret_outcome);
}

static int fd(const void *state)
{
	return cap_lease_guard_fd(state);
}

static int end(void *state, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	return cap_lease_end(state, ret_outcome, reterr);
}

static int keep(void *state, struct wattle_error *reterr)
{
	return cap_lease_keep(state, reterr);
}

static void disown(void *state)
{
	cap_lease_disown(state);
}

static int set_persistent(const struct cap_holder *holder, struct cap_device *device, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	return cap_set_persistent(holder->env, device, &holder->owner, value, for_ns, &holder->guard, ret_outcome,
		reterr);
}

static int end_timed(const struct cap_holder *holder, struct cap_device *device, struct wattle_error *reterr)
{
	int r = persistent_end_timed(holder->env, device, reterr);
	return r < 0 ? r : 0;
}

static int reset(const struct cap_holder *holder, struct cap_device *device, bool to_default,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	return cap_reset(holder->env, device, to_default, ret_outcome, reterr);
}

const struct limit_ops local_limit_ops = {
	.can_set = can_set,
	.open = open_own,
	.set = set,
	.check = check,
	.fd = fd,
	.end = end,
	.keep = keep,
	.disown = disown,
	.set_persistent = set_persistent,
	.end_timed = end_timed,
	.reset = reset,
};
