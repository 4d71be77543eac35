#include "helper/limits.h"

#include "base/util.h"
#include "cap/lease.h"
#include "helper/log.h"
#include "helper/request.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

// What a client holds of the device of the same number.
struct held {
	struct cap_lease *lease; // NULL: nothing
	struct cap_owner owner;
	int pidfd;        // owned; -1: a limit for a time, which outlives who asked for it
	int64_t until_ns; // VALUE_MISSING: as long as the owner lives
};

struct limits {
	const struct wattle_env *env; // borrowed
	struct cap_devices devices;
	struct held *held; // owned; as many as devices
	int epoll_fd;      // owned; the pidfds
};

// One question about one device, on its way through the functions below.
struct question {
	struct limits *limits;
	const struct asker *asker;
	const struct proto_request *request;
	struct cap_device *device;
	struct held *held;
	bool may;           // limit this device
	double least, most; // of what the asker may ask for, W or MHz; NaN: not known
};

static_assert((int)POLICY_POWER == (int)CAP_POWER && (int)POLICY_CLOCKS == (int)CAP_CLOCKS, "one numbering of kinds");

/* ---- units: mW and MHz on the wire, W and MHz in caps ---- */

static double scale_of(const struct cap_device *device)
{
	return device->what == CAP_POWER ? 1e3 : 1;
}

static int64_t to_wire(const struct cap_device *device, double value)
{
	double scaled = value * scale_of(device);
	return isfinite(scaled) && fabs(scaled) < 1e15 ? llround(scaled) : VALUE_MISSING;
}

static double from_wire(const struct cap_device *device, int64_t value)
{
	return (double)value / scale_of(device);
}

/* ---- coming and going ---- */

int limits_open(const struct wattle_env *env, struct limits **ret_limits, struct wattle_error *reterr)
{
	struct limits *limits = calloc(1, sizeof(*limits));
	if (limits == NULL)
		return error_set(reterr, -ENOMEM, "no memory for the devices");
	limits->env = env;
	limits->epoll_fd = -1;
	int r = cap_devices_open(&limits->devices, env, reterr);
	if (r == 0)
		limits->held = calloc_array(limits->devices.n, sizeof(limits->held[0]));
	if (r == 0 && limits->held == NULL)
		r = error_set(reterr, -ENOMEM, "no memory for the devices");
	for (size_t i = 0; r == 0 && i < limits->devices.n; i++)
		limits->held[i] = (struct held){.pidfd = -1, .until_ns = VALUE_MISSING};
	if (r == 0 && (limits->epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
		r = error_set(reterr, -errno, "epoll: %s", strerror(errno));
	if (r < 0) {
		limits_close(limits);
		return r;
	}
	*ret_limits = limits;
	return 0;
}

static void forget(struct held *held)
{
	if (held->pidfd >= 0)
		close(held->pidfd); // epoll forgets it with it
	*held = (struct held){.pidfd = -1, .until_ns = VALUE_MISSING};
}

// Nobody is there to be told but the log.
static void end_unasked(struct limits *limits, size_t i, const char *why)
{
	struct held *held = &limits->held[i];
	struct cap_owner owner = held->owner;
	struct cap_outcome outcome = {0};
	struct wattle_error error = {0};
	int r = cap_lease_end(held->lease, &outcome, &error);
	forget(held);
	const char *told = r < 0 ? error.text : outcome.text[0] != '\0' ? outcome.text : "the limit before it is back";
	log_line(r < 0 ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "%s: %s of pid %d, user %u, %s: %s",
		limits->devices.devices[i].name, owner.name, (int)owner.pid, owner.uid, why, told);
}

void limits_close(struct limits *limits)
{
	if (limits == NULL)
		return;
	for (size_t i = 0; limits->held != NULL && i < limits->devices.n; i++)
		if (limits->held[i].lease != NULL)
			end_unasked(limits, i, "wattled ends");
	if (limits->epoll_fd >= 0)
		close(limits->epoll_fd);
	free(limits->held);
	cap_devices_close(&limits->devices);
	free(limits);
}

int limits_fd(const struct limits *limits)
{
	return limits->epoll_fd;
}

void limits_turn(struct limits *limits)
{
	struct epoll_event events[16];
	int n = epoll_wait(limits->epoll_fd, events, ARRAY_SIZE(events), 0);
	for (int i = 0; i < n; i++)
		if (limits->held[events[i].data.u32].lease != NULL)
			end_unasked(limits, events[i].data.u32, "which has ended");
}

void limits_sweep(struct limits *limits, int64_t now_ns)
{
	for (size_t i = 0; i < limits->devices.n; i++)
		if (value_ok(limits->held[i].until_ns) && now_ns >= limits->held[i].until_ns)
			end_unasked(limits, i, "its time is over");
}

size_t limits_count(const struct limits *limits)
{
	return limits->devices.n;
}

const struct cap_devices *limits_devices(const struct limits *limits)
{
	return &limits->devices;
}

bool limits_need_admin(const struct cap_devices *devices)
{
	for (size_t i = 0; i < devices->n; i++)
		if ((devices->devices[i].settable || devices->devices[i].asleep) &&
			strncmp(devices->devices[i].id, "GPU-", 4) == 0)
			return true;
	return false;
}

static bool may_cap(const struct cap_device *device, const struct policy *policy, struct policy_rights rights,
	double *ret_least, double *ret_most)
{
	double least, most;
	if (!policy_may_cap(policy, rights, device->name, device->id, (enum policy_kind)device->what, &least, &most))
		return false;
	// fmax and fmin leave out what the device does not state.
	*ret_least = fmax(least, device->min);
	*ret_most = fmin(most, device->max);
	return true;
}

bool limits_may_any(const struct limits *limits, const struct policy *policy, struct policy_rights rights)
{
	double least, most;
	for (size_t i = 0; i < limits->devices.n; i++)
		if (limits->devices.devices[i].settable &&
			may_cap(&limits->devices.devices[i], policy, rights, &least, &most))
			return true;
	return false;
}

/* ---- questions ---- */

// A lease is its process's: by number while that process lives, so the number can't be another's yet.
static bool is_holder(const struct question *question)
{
	const struct cap_owner *owner = &question->held->owner;
	return question->held->lease != NULL && question->held->pidfd >= 0 &&
		owner->pid == question->asker->peer.pid && owner->uid == question->asker->peer.uid;
}

static void put_outcome(const struct question *question, const struct cap_outcome *from, struct proto_outcome *to)
{
	to->previous = to_wire(question->device, from->previous);
	to->set = to_wire(question->device, from->set);
	to->foreign = from->was_foreign ? to_wire(question->device, from->foreign) : VALUE_MISSING;
	to->was_foreign = from->was_foreign;
	to->was_rounded = from->was_rounded;
	text_copy(to->text, sizeof(to->text), from->text);
}

static struct cap_owner owner_of(const struct question *question)
{
	const struct peer *peer = &question->asker->peer;
	struct cap_owner owner = {.pid = peer->pid, .uid = peer->uid};
	owner.start_ticks = peer_start_ticks(question->limits->env, peer->pid);
	text_copy(owner.name, sizeof(owner.name), question->request->name[0] != '\0' ? question->request->name : "a client");
	return owner;
}

static void log_set(const struct question *question, const struct cap_outcome *outcome, const char *how)
{
	const struct peer *peer = &question->asker->peer;
	const char *unit = cap_what_unit(question->device->what);
	log_client(LOG_LEVEL_INFO, "%s: %.6g %s (before: %.6g) %s by %s, pid %d, user %u", question->device->name,
		outcome->set, unit, outcome->previous, how, question->request->name, (int)peer->pid, peer->uid);
}

static int out_of_range(const struct question *question, struct wattle_error *reterr)
{
	const char *unit = cap_what_unit(question->device->what);
	return error_set(reterr, -ERANGE, "%s: %.6g %s is not within %.6g to %.6g %s, which the helper lets you set",
		question->device->name, from_wire(question->device, question->request->value), unit, question->least,
		question->most, unit);
}

// A lease for `held`, which is empty, with a limit; or nothing at all.
static int lease(const struct question *question, int pidfd, int64_t until_ns, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct held *held = question->held;
	struct held taken = {.owner = owner_of(question), .pidfd = pidfd, .until_ns = until_ns};
	struct epoll_event event = {.events = EPOLLIN,
		.data.u32 = (uint32_t)(question->device - question->limits->devices.devices)};
	// No guard of its own: wattled has one for all (guard.h).
	int r = cap_lease_open(question->limits->env, question->device, &taken.owner, NULL, &taken.lease, reterr);
	if (r < 0)
		return r;
	r = cap_lease_set(taken.lease, from_wire(question->device, question->request->value), ret_outcome, reterr);
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

static int lease_for_process(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int pidfd = peer_pidfd(question->asker->fd, &question->asker->peer, question->limits->env);
	if (pidfd < 0)
		return error_set(reterr, pidfd, "the process that connected can't be watched (%s), so it can't hold a limit",
			strerror(-pidfd));
	int r = lease(question, pidfd, VALUE_MISSING, ret_outcome, reterr);
	if (r < 0)
		close(pidfd);
	return r;
}

static int set_lease(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	double value = from_wire(question->device, question->request->value);
	if (question->request->for_s != 0)
		return error_set(reterr, -EINVAL, "a limit of a process has no time of its own");
	int r = is_holder(question) ? cap_lease_set(question->held->lease, value, ret_outcome, reterr)
				    : lease_for_process(question, ret_outcome, reterr);
	if (r == 0)
		log_set(question, ret_outcome, "as long as it lives,");
	return r;
}

static int set_standing(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	const struct wattle_env *env = question->limits->env;
	struct cap_owner owner = owner_of(question);
	uint32_t for_s = question->request->for_s;
	int r;
	if (for_s > 0)
		r = lease(question, -1, env_now_ns(env) + for_s * NS_PER_S, ret_outcome, reterr);
	else
		r = cap_stand(env, question->device, &owner, from_wire(question->device, question->request->value), 0,
			NULL, ret_outcome, reterr);
	if (r == 0)
		log_set(question, ret_outcome, for_s > 0 ? "for a time" : "to stay");
	return r;
}

static int set(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct cap_device *same;
	struct cap_device *device = question->device;
	// Wakes a GPU that sleeps, whose range is not known before; it stays at its place.
	int r = cap_devices_find(&question->limits->devices, device->name, device->what, &same, reterr);
	if (r < 0)
		return r;
	double value = from_wire(device, question->request->value);
	if (value < question->least || value > question->most)
		return out_of_range(question, reterr);
	if (question->request->mode == PROTO_LEASE)
		return set_lease(question, ret_outcome, reterr);
	if (question->request->mode == PROTO_STANDING)
		return set_standing(question, ret_outcome, reterr);
	return error_set(reterr, -EINVAL, "there is no such way to set a limit");
}

static int check_mine(const struct question *question, struct wattle_error *reterr)
{
	if (is_holder(question))
		return 0;
	return error_set(reterr, -ENOENT, "%s: this process holds no limit of it", question->device->name);
}

static int check(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int r = check_mine(question, reterr);
	if (r < 0)
		return r;
	r = cap_lease_check(question->held->lease, ret_outcome);
	if (r < 0)
		return error_set(reterr, r, "%s: %s", question->device->name,
			ret_outcome->text[0] != '\0' ? ret_outcome->text : strerror(-r));
	return 0; // somebody else's change is said by the outcome
}

static int end(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int r = check_mine(question, reterr);
	if (r < 0)
		return r;
	r = cap_lease_end(question->held->lease, ret_outcome, reterr); // which frees it, come what may
	log_client(LOG_LEVEL_INFO, "%s: %s, pid %d, user %u is done with it", question->device->name,
		question->held->owner.name, (int)question->held->owner.pid, question->held->owner.uid);
	forget(question->held);
	return r;
}

static int keep(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int r = check_mine(question, reterr);
	if (r < 0)
		return r;
	r = cap_lease_keep(question->held->lease, reterr);
	log_client(LOG_LEVEL_INFO, "%s: %s, pid %d, user %u leaves its limit to stay", question->device->name,
		question->held->owner.name, (int)question->held->owner.pid, question->held->owner.uid);
	forget(question->held);
	return r;
}

// A limit for a time hangs on no process: who asked for it, or root, may end it before.
static bool may_cut_short(const struct question *question)
{
	uid_t uid = question->asker->peer.uid;
	return value_ok(question->held->until_ns) && (uid == 0 || uid == question->held->owner.uid);
}

static int reset(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	const struct peer *peer = &question->asker->peer;
	if (may_cut_short(question)) {
		int r = cap_lease_end(question->held->lease, ret_outcome, reterr);
		forget(question->held);
		if (r < 0 || question->request->mode != 1)
			return r;
	}
	int r = cap_reset(question->limits->env, question->device, question->request->mode == 1, ret_outcome, reterr);
	if (r == 0)
		log_client(LOG_LEVEL_INFO, "%s: reset by pid %d, user %u", question->device->name, (int)peer->pid, peer->uid);
	return r;
}

static void describe(const struct question *question, struct proto_device *ret_row)
{
	const struct cap_device *device = question->device;
	struct cap_owner owner = {0};
	char text[160];
	text_copy(ret_row->name, sizeof(ret_row->name), device->name);
	text_copy(ret_row->id, sizeof(ret_row->id), device->id);
	ret_row->what = (uint32_t)device->what;
	ret_row->may_set = question->may && device->settable;
	ret_row->least = to_wire(device, question->least);
	ret_row->most = to_wire(device, question->most);
	if (!cap_lease_holder(question->limits->env, device, &owner, text, sizeof(text)))
		return;
	ret_row->lease_pid = (uint32_t)owner.pid;
	ret_row->lease_uid = owner.uid;
	text_copy(ret_row->lease_name, sizeof(ret_row->lease_name), owner.name);
}

static int refuse(struct proto_reply *reply, int code, const char *text)
{
	text_copy(reply->outcome.text, sizeof(reply->outcome.text), text);
	return code;
}

static int change(const struct question *question, struct proto_reply *reply)
{
	static int (*const kinds[])(const struct question *, struct cap_outcome *, struct wattle_error *) = {
		[PROTO_SET] = set,
		[PROTO_CHECK] = check,
		[PROTO_END] = end,
		[PROTO_KEEP] = keep,
		[PROTO_RESET] = reset,
	};
	const double unknown = (double)NAN;
	struct cap_outcome outcome = {.previous = unknown, .set = unknown, .foreign = unknown};
	struct wattle_error error = {0};
	int r = kinds[question->request->type](question, &outcome, &error);
	if (r < 0)
		return refuse(reply, r, error.text);
	put_outcome(question, &outcome, &reply->outcome);
	return 0;
}

int limits_serve(struct limits *limits, const struct policy *policy, const struct asker *asker,
	const struct proto_request *request, struct proto_reply *reply)
{
	if (request->number >= limits->devices.n)
		return refuse(reply, -ENOENT, "there is no device of that number");
	struct question question = {
		.limits = limits,
		.asker = asker,
		.request = request,
		.device = &limits->devices.devices[request->number],
		.held = &limits->held[request->number],
		.least = (double)NAN,
		.most = (double)NAN,
	};
	question.may = may_cap(question.device, policy, asker->rights, &question.least, &question.most);
	if (request->type == PROTO_DEVICE) {
		describe(&question, &reply->device);
		return 0;
	}
	if (!question.may)
		return refuse(reply, -EACCES, "the helper's policy does not let you limit this device");
	if (!question.device->settable && !question.device->asleep && request->type == PROTO_SET)
		return refuse(reply, -EACCES, question.device->why);
	return change(&question, reply);
}
