#include "cap/lease.h"

#include "base/util.h"
#include "cap/internal.h"

#include <errno.h>

static const struct limit_ops *const ways[] = {&local_limit_ops, &remote_limit_ops};

struct cap_hold {
	const struct limit_ops *way;
	void *state; // private to the method
};

// -EACCES with the reason and a remedy, before starting anything that would fail.
static int choose(const struct cap_holder *holder, const struct cap_device *device, const struct limit_ops **ret_way,
	struct wattle_error *reterr)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		if (!ways[i]->can_set(holder, device))
			continue;
		*ret_way = ways[i];
		return 0;
	}
	return error_set(reterr, -EACCES, "%s can't be limited: %s%s%s", device->name,
		device->why[0] != '\0' ? device->why : "its limit can't be changed",
		device->remedy[0] != '\0' ? "; " : "", device->remedy);
}

void cap_holds_describe(const struct cap_holder *holder, struct cap_devices *devices)
{
	struct cap_owner owner;
	for (size_t i = 0; i < devices->n; i++) {
		struct cap_device *device = &devices->devices[i];
		if (!cap_lease_holder(holder->env, device, &owner, device->lease, sizeof(device->lease)))
			device->lease[0] = '\0';
		device->is_persistent = cap_persistent_is_current(holder->env, device, &device->before);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (ways[i]->describe != NULL)
			ways[i]->describe(holder, devices);
}

int cap_hold_open(const struct cap_holder *holder, struct cap_device *device, struct cap_hold **ret_hold,
	struct wattle_error *reterr)
{
	const struct limit_ops *way = NULL;
	int r = choose(holder, device, &way, reterr);
	if (r < 0)
		return r;
	struct cap_hold *hold = calloc(1, sizeof(*hold));
	if (hold == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	hold->way = way;
	r = way->open(holder, device, &hold->state, reterr);
	if (r < 0)
		free(hold);
	else
		*ret_hold = hold;
	return r;
}

int cap_hold_set(struct cap_hold *hold, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	return hold->way->set(hold->state, value, ret_outcome, reterr);
}

int cap_hold_check(struct cap_hold *hold, struct cap_outcome *ret_outcome)
{
	return hold->way->check(hold->state, ret_outcome);
}

int cap_hold_fd(const struct cap_hold *hold)
{
	return hold->way->fd(hold->state);
}

int cap_hold_end(struct cap_hold *hold, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int r = hold->way->end(hold->state, ret_outcome, reterr);
	free(hold);
	return r;
}

void cap_hold_disown(struct cap_hold *hold)
{
	if (hold == NULL)
		return;
	hold->way->disown(hold->state);
	free(hold);
}

int cap_hold_keep(struct cap_hold *hold, struct wattle_error *reterr)
{
	int r = hold->way->keep(hold->state, reterr);
	free(hold);
	return r;
}

bool cap_hold_is_remote(const struct cap_hold *hold)
{
	return hold->way != &local_limit_ops;
}

int cap_hold_set_persistent(const struct cap_holder *holder, struct cap_device *device, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	const struct limit_ops *way = NULL;
	int r = choose(holder, device, &way, reterr);
	return r < 0 ? r : way->set_persistent(holder, device, value, for_ns, ret_outcome, reterr);
}

int cap_hold_end_timed(const struct cap_holder *holder, struct cap_device *device, struct wattle_error *reterr)
{
	const struct limit_ops *way = NULL;
	int r = choose(holder, device, &way, reterr);
	return r < 0 ? r : way->end_timed(holder, device, reterr);
}

int cap_hold_reset(const struct cap_holder *holder, struct cap_device *device, bool to_default,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	const struct limit_ops *way = NULL;
	int r = choose(holder, device, &way, reterr);
	if (r < 0)
		return r;
	r = way->reset(holder, device, to_default, ret_outcome, reterr);
	// Only the helper can end a timed limit that it holds.
	if (r == -EBUSY && way == &local_limit_ops &&
		remote_limit_ops.reset(holder, device, to_default, ret_outcome, NULL) == 0)
		r = 0;
	return r;
}
