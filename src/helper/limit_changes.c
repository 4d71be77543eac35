/* Changes of limits by clients. */
#include "helper/server.h"

#include "helper/helper.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CHANGES_MAX = 100 }; // in a burst; then one per CHANGE_NS
static const int64_t CHANGE_NS = 50 * NS_PER_MS;

void held_remove(struct held *held)
{
	if (held->pidfd >= 0)
		close(held->pidfd); // this also removes it from the epoll set
	*held = (struct held){.pidfd = -1, .until_ns = VALUE_MISSING};
}

// Compares pids: the lease ends with its process, so the pid can't have been reused yet.
bool is_holder(const struct question *question)
{
	const struct cap_owner *owner = &question->held->owner;
	return question->held->lease != NULL && question->held->pidfd >= 0 &&
		owner->pid == question->identity->peer.pid && owner->uid == question->identity->peer.uid;
}

static struct cap_owner owner_of(const struct question *question)
{
	const struct peer *peer = &question->identity->peer;
	struct cap_owner owner = {.pid = peer->pid, .uid = peer->uid};
	owner.start_ticks = peer_start_ticks(question->limits->env, peer->pid);
	text_copy(owner.name, sizeof(owner.name),
		question->request->name[0] != '\0' ? question->request->name : "a client");
	return owner;
}

static void log_set(const struct question *question, const struct cap_outcome *outcome, const char *how)
{
	const struct peer *peer = &question->identity->peer;
	const char *unit = cap_kind_unit(question->device->what);
	log_client(&question->limits->log, LOG_LEVEL_INFO, "%s: %.6g %s (before: %.6g) %s by %s, pid %d, user %u",
		question->device->name, outcome->set, unit, outcome->previous, how, question->request->name,
		(int)peer->pid, peer->uid);
}

static int out_of_range(const struct question *question, double value, struct wattle_error *reterr)
{
	const char *unit = cap_kind_unit(question->device->what);
	return error_set(reterr, -ERANGE, "%s: %.6g %s is not within %.6g to %.6g %s, which the helper lets you set",
		question->device->name, value, unit, question->least, question->most, unit);
}

// Takes a lease for `held`, which must be empty, and sets a limit. On failure there is no lease.
static int lease(const struct question *question, int pidfd, int64_t until_ns, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct held *held = question->held;
	struct held taken = {.owner = owner_of(question), .pidfd = pidfd, .until_ns = until_ns};
	struct epoll_event event = {.events = EPOLLIN,
		.data.u32 = (uint32_t)(question->device - question->limits->devices.devices)};
	// The lease has no guard of its own: wattled has one for all (helper.h).
	int r = cap_lease_open(question->limits->env, question->device, &taken.owner, NULL, &taken.lease, reterr);
	if (r < 0)
		return r;
	r = cap_lease_set(taken.lease, limit_from_wire(question->device, question->request->value), ret_outcome,
		reterr);
	if (r == 0 && pidfd >= 0 && epoll_ctl(question->limits->epoll_fd, EPOLL_CTL_ADD, pidfd, &event) < 0)
		r = error_set(reterr, -errno, "epoll: %s", strerror(errno));
	if (r < 0) {
		struct cap_outcome ignored;
		cap_lease_end(taken.lease, &ignored, NULL);
		return r;
	}
	*held = taken;
	return 0;
}

static int lease_for_process(const struct question *question, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	int pidfd = peer_pidfd(question->identity->fd, &question->identity->peer, question->limits->env);
	if (pidfd < 0)
		return error_set(reterr, pidfd,
			"can't watch the connected process (%s), so it can't hold a limit", strerror(-pidfd));
	int r = lease(question, pidfd, VALUE_MISSING, ret_outcome, reterr);
	if (r < 0)
		close(pidfd);
	return r;
}

static int set_lease(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	double value = limit_from_wire(question->device, question->request->value);
	if (question->request->for_s != 0)
		return error_set(reterr, -EINVAL, "a limit held by a process can't have a duration");
	int r = is_holder(question) ? cap_lease_set(question->held->lease, value, ret_outcome, reterr)
				    : lease_for_process(question, ret_outcome, reterr);
	if (r == 0)
		log_set(question, ret_outcome, "as long as it lives,");
	return r;
}

static int set_persistent(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	const struct wattle_env *env = question->limits->env;
	struct cap_owner owner = owner_of(question);
	uint32_t for_s = question->request->for_s;
	int r;
	if (for_s > 0)
		r = lease(question, -1, env_now_ns(env) + for_s * NS_PER_S, ret_outcome, reterr);
	else
		r = cap_set_persistent(env, question->device, &owner,
			limit_from_wire(question->device, question->request->value), 0, NULL, ret_outcome, reterr);
	if (r == 0)
		log_set(question, ret_outcome, for_s > 0 ? "for a time" : "to stay");
	return r;
}

typedef int (*change_fn)(const struct question *, struct cap_outcome *, struct wattle_error *);

/* Limits the rate of changes, so that the disk and the driver stay available to others. Requests refused because
 * another client holds the device do not count; otherwise any authorised client could block the holder. */
static int at_pace(const struct question *question, change_fn change, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct pace *pace = &question->limits->paces[question->request->number];
	int64_t now_ns = env_now_ns(question->limits->env);
	if (pace->free_ns < now_ns)
		pace->free_ns = now_ns;
	if (pace->free_ns - now_ns >= CHANGES_MAX * CHANGE_NS)
		return error_set(reterr, -EAGAIN,
			"%s: too many changes of its limit; the helper allows 20 per second, or what the "
			"driver supports",
			question->device->name);
	int r = change(question, ret_outcome, reterr);
	if (r == -EBUSY || ret_outcome->was_nothing)
		return r;
	// If the driver took longer, waits as long again: half of the time is left for the other devices.
	int64_t done_ns = env_now_ns(question->limits->env);
	int64_t took_ns = done_ns - now_ns;
	if (pace->free_ns < done_ns)
		pace->free_ns = done_ns;
	pace->free_ns += took_ns > CHANGE_NS ? took_ns : CHANGE_NS;
	return r;
}

static int set(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	double value = limit_from_wire(question->device, question->request->value);
	if (value < question->least || value > question->most)
		return out_of_range(question, value, reterr);
	if (question->request->mode == PROTO_LEASE)
		return at_pace(question, set_lease, ret_outcome, reterr);
	if (question->request->mode == PROTO_PERSISTENT)
		return at_pace(question, set_persistent, ret_outcome, reterr);
	return error_set(reterr, -EINVAL, "unknown way to set a limit");
}

static int check_own_limits(const struct question *question, struct wattle_error *reterr)
{
	if (is_holder(question))
		return 0;
	return error_set(reterr, -ENOENT, "%s: this process holds no limit on it", question->device->name);
}

static int check(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int r = check_own_limits(question, reterr);
	if (r < 0)
		return r;
	r = cap_lease_check(question->held->lease, ret_outcome);
	if (r < 0)
		return error_set(reterr, r, "%s: %s", question->device->name,
			ret_outcome->text[0] != '\0' ? ret_outcome->text : strerror(-r));
	return 0; // the outcome reports a change by another program
}

static int end(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int r = check_own_limits(question, reterr);
	if (r < 0)
		return r;
	r = cap_lease_end(question->held->lease, ret_outcome, reterr); // frees the lease in any case
	log_client(&question->limits->log, LOG_LEVEL_INFO, "%s: %s, pid %d, user %u released it",
		question->device->name, question->held->owner.name, (int)question->held->owner.pid,
		question->held->owner.uid);
	held_remove(question->held);
	return r;
}

static int keep(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int r = check_own_limits(question, reterr);
	if (r < 0)
		return r;
	r = cap_lease_keep(question->held->lease, reterr);
	log_client(&question->limits->log, LOG_LEVEL_INFO, "%s: %s, pid %d, user %u made its limit persistent",
		question->device->name, question->held->owner.name, (int)question->held->owner.pid,
		question->held->owner.uid);
	held_remove(question->held);
	return r;
}

// A timed limit does not depend on a process: the user who set it, or root, may end it early.
static bool may_cut_short(const struct question *question)
{
	uid_t uid = question->identity->peer.uid;
	return value_ok(question->held->until_ns) && (uid == 0 || uid == question->held->owner.uid);
}

// The limit after a reset; NaN: none, unknown, or the present one was set by this user.
static double reset_to(const struct question *question)
{
	const struct cap_device *device = question->device;
	double before = (double)NAN;
	struct cap_owner first;
	bool stands = cap_has_persistent(question->limits->env, device, &before, &first);
	bool to_default = question->request->mode == 1;
	if (stands && !to_default && first.uid == question->identity->peer.uid)
		return (double)NAN;
	if (device->what == CAP_CLOCKS && (stands || to_default))
		return isnan(device->max) ? (double)INFINITY : device->max; // no clock lock
	return to_default ? device->default_ : before;
}

/* A reset also sets a limit: a user with the range 200 to 400 W may not set the device to 700 W, except to restore what
 * it had before their change. Nor may they end a timed limit that root set without this helper. */
static int check_reset(const struct question *question, struct wattle_error *reterr)
{
	struct cap_owner owner;
	char who[160];
	uid_t uid = question->identity->peer.uid;
	if (cap_lease_holder(question->limits->env, question->device, &owner, who, sizeof(who)) && uid != 0 &&
		uid != owner.uid)
		return error_set(reterr, -EBUSY, "%s is limited by %s; only this owner or root can end the limit",
			question->device->name, who);
	double to = reset_to(question);
	if (to < question->least || to > question->most)
		return out_of_range(question, to, reterr);
	return 0;
}

static int reset_now(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	const struct peer *peer = &question->identity->peer;
	if (may_cut_short(question)) {
		int r = cap_lease_end(question->held->lease, ret_outcome, reterr);
		held_remove(question->held);
		if (r < 0 || question->request->mode != 1)
			return r;
	}
	int allowed = check_reset(question, reterr);
	if (allowed < 0)
		return allowed;
	int r = cap_reset(question->limits->env, question->device, question->request->mode == 1, ret_outcome, reterr);
	if (r == 0)
		log_client(&question->limits->log, LOG_LEVEL_INFO, "%s: reset by pid %d, user %u",
			question->device->name, (int)peer->pid, peer->uid);
	return r;
}

static int reset(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	return at_pace(question, reset_now, ret_outcome, reterr);
}

int limit_change(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	static const change_fn kinds[] = {
		[PROTO_SET] = set,
		[PROTO_CHECK] = check,
		[PROTO_END] = end,
		[PROTO_KEEP] = keep,
		[PROTO_RESET] = reset,
	};
	return kinds[question->request->type](question, ret_outcome, reterr);
}
