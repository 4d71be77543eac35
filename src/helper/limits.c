#include "helper/server.h"

#include "base/fnv.h"
#include "cap/journal.h"
#include "cap/nvml.h"
#include "helper/helper.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

static_assert((int)POLICY_POWER == (int)CAP_POWER && (int)POLICY_CLOCKS == (int)CAP_CLOCKS, "both enums number the kinds of limits equally");

enum { RECOVER_S = 10 };

/* ---- restoring and ending ---- */

static void add_message(struct known *known, const struct cap_device *device)
{
	text_copy(known->name, sizeof(known->name), device->name);
	text_copy(known->id, sizeof(known->id), device->id);
	known->kind = (enum policy_kind)device->what;
	known->can_be_set = device->settable || device->asleep;
}

int limits_open(const struct wattle_env *env, struct limits **ret_limits, struct wattle_error *reterr)
{
	struct limits *limits = calloc(1, sizeof(*limits));
	if (limits == NULL)
		return error_set(reterr, -ENOMEM, "out of memory for the devices");
	limits->env = env;
	limits->epoll_fd = -1;
	limits->recover_ns = env_now_ns(env) + NS_PER_S; // main has just done it
	int r = cap_devices_open(&limits->devices, env, reterr);
	if (r == 0)
		limits->held = calloc_array(limits->devices.n, sizeof(limits->held[0]));
	if (r == 0)
		limits->paces = calloc_array(limits->devices.n, sizeof(limits->paces[0]));
	if (r == 0)
		limits->known = calloc_array(limits->devices.n, sizeof(limits->known[0]));
	if (r == 0 && (limits->held == NULL || limits->paces == NULL || limits->known == NULL))
		r = error_set(reterr, -ENOMEM, "out of memory for the devices");
	for (size_t i = 0; r == 0 && i < limits->devices.n; i++) {
		limits->held[i] = (struct held){.pidfd = -1, .until_ns = VALUE_MISSING};
		add_message(&limits->known[i], &limits->devices.devices[i]);
	}
	if (r == 0 && (limits->epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
		r = error_set(reterr, -errno, "epoll: %s", strerror(errno));
	if (r < 0) {
		limits_close(limits);
		return r;
	}
	*ret_limits = limits;
	return 0;
}

static bool was_reported(const struct reported_messages *reported, uint64_t hash)
{
	for (size_t i = 0; i < reported->n; i++)
		if (reported->hashes[i] == hash)
			return true;
	return false;
}

// A limit that can't be restored is found again by each check, but logged only once.
static void report(void *data, const char *text)
{
	struct limits *limits = data;
	uint64_t hash = fnv_u64(FNV_START_U64, text);
	if (limits->reported.n < REPORTED_MAX)
		limits->reported.hashes[limits->reported.n++] = hash;
	if (!was_reported(&limits->reported_before, hash))
		log_client(&limits->log, LOG_LEVEL_NOTICE, "%s", text);
}

// Ends a lease without a client to reply to: the result is logged.
static void end_orphaned(struct limits *limits, size_t i, const char *why)
{
	struct held *held = &limits->held[i];
	struct cap_owner owner = held->owner;
	struct cap_outcome outcome = {0};
	struct wattle_error error = {0};
	int r = cap_lease_end(held->lease, &outcome, &error);
	held_remove(held);
	const char *reported = r < 0      ? error.text
		: outcome.text[0] != '\0' ? outcome.text
					  : "the previous limit is restored";
	log_line(r < 0 ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "%s: %s of pid %d, user %u, %s: %s",
		limits->devices.devices[i].name, owner.name, (int)owner.pid, owner.uid, why, reported);
}

void limits_close(struct limits *limits)
{
	if (limits == NULL)
		return;
	for (size_t i = 0; limits->held != NULL && i < limits->devices.n; i++)
		if (limits->held[i].lease != NULL)
			end_orphaned(limits, i, "wattled ends");
	if (limits->epoll_fd >= 0)
		close(limits->epoll_fd);
	free(limits->held);
	free(limits->paces);
	free(limits->known);
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
			end_orphaned(limits, events[i].data.u32, "which has ended");
}

/* Restores limits of others that died while wattled runs: a wattle run by root and killed together with its guard, an
 * earlier wattled that was still exiting when this one started, or a device that was lost at the end of its lease and
 * is back. */
static void recover_again(struct limits *limits, int64_t now_ns)
{
	struct journal journal;
	if (now_ns < limits->recover_ns)
		return;
	limits->recover_ns = now_ns + RECOVER_S * NS_PER_S;
	if (journal_open(limits->env, false, &journal, NULL) < 0)
		return;
	struct recovery recovery = {
		.env = limits->env,
		.journal = &journal,
		.devices = &limits->devices,
		.is_open = true,
		.wait_mode = LOCK_TRY,
		.report = report,
		.data = limits,
	};
	limits->reported_before = limits->reported;
	limits->reported.n = 0;
	recover_all(&recovery);
	journal_close(&journal);
}

void limits_sweep(struct limits *limits, int64_t now_ns)
{
	recover_again(limits, now_ns);
	for (size_t i = 0; i < limits->devices.n; i++)
		if (value_ok(limits->held[i].until_ns) && now_ns >= limits->held[i].until_ns)
			end_orphaned(limits, i, "its duration has ended");
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
	// Back ends are compared instead of UUIDs: sleeping devices have not reported theirs, and some have none.
	for (size_t i = 0; i < devices->n; i++) {
		const struct cap_device *device = &devices->devices[i];
		bool is_nvidia = device->ops == &cap_nvml_power || device->ops == &cap_nvml_clocks;
		if (is_nvidia && (device->settable || device->asleep))
			return true;
	}
	return false;
}

static bool may_cap(const struct cap_device *device, const struct client_identity *identity, double *ret_min,
	double *ret_max)
{
	double least, most;
	if (!policy_may_cap(identity->policy, identity->rights, device->name, device->id,
		    (enum policy_kind)device->what, &least, &most))
		return false;
	// fmax and fmin ignore values that the device does not report.
	*ret_min = fmax(least, device->min);
	*ret_max = fmin(most, device->max);
	return true;
}

bool limits_may_any(const struct limits *limits, const struct policy *policy, struct policy_rights rights)
{
	double least, most;
	for (size_t i = 0; i < limits->devices.n; i++) {
		const struct known *known = &limits->known[i];
		if (known->can_be_set &&
			policy_may_cap(policy, rights, known->name, known->id, known->kind, &least, &most))
			return true;
	}
	return false;
}

/* ---- requests ---- */

static void put_outcome(const struct question *question, const struct cap_outcome *from, struct proto_outcome *to)
{
	to->previous = limit_to_wire(question->device, from->previous);
	to->set = limit_to_wire(question->device, from->set);
	to->foreign = from->was_foreign ? limit_to_wire(question->device, from->foreign) : VALUE_MISSING;
	to->was_foreign = from->was_foreign;
	to->was_rounded = from->was_rounded;
	text_copy(to->text, sizeof(to->text), from->text);
}

static void describe(const struct question *question, struct proto_device *ret_row)
{
	const struct cap_device *device = question->device;
	struct cap_owner owner = {0};
	char text[160];
	text_copy(ret_row->name, sizeof(ret_row->name), device->name);
	text_copy(ret_row->id, sizeof(ret_row->id), device->id);
	ret_row->what = (uint32_t)device->what;
	ret_row->may_set = question->may && (device->settable || device->asleep); // setting it wakes it
	ret_row->least = limit_to_wire(device, question->least);
	ret_row->most = limit_to_wire(device, question->most);
	if (!cap_lease_holder(question->limits->env, device, &owner, text, sizeof(text)))
		return;
	ret_row->lease_pid = (uint32_t)owner.pid;
	ret_row->lease_uid = owner.uid;
	text_copy(ret_row->lease_name, sizeof(ret_row->lease_name), owner.name);
}

static const char may_not_limit[] =
	"the helper's policy does not let you limit this device; an administrator can add a `cap` rule";

static int refuse(struct proto_reply *reply, int code, const char *text)
{
	text_copy(reply->outcome.text, sizeof(reply->outcome.text), text);
	return code;
}

/* The range and the UUID of a sleeping GPU are unknown, and the policy may name the UUID. If the policy allows the
 * client by what is known, this wakes the GPU and checks the policy again. Its index does not change. */
static int wake(struct question *question, struct proto_reply *reply)
{
	struct cap_device *same;
	struct cap_device *device = question->device;
	struct wattle_error error = {0};
	if (!device->asleep)
		return 0;
	int r = cap_devices_find(&question->limits->devices, device->name, device->what, &same, &error);
	if (r < 0)
		return refuse(reply, r, error.text);
	question->may = may_cap(device, question->identity, &question->least, &question->most);
	return question->may ? 0 : refuse(reply, -EACCES, may_not_limit);
}

static int change(const struct question *question, struct proto_reply *reply)
{
	const double unknown = (double)NAN;
	struct cap_outcome outcome = {.previous = unknown, .set = unknown, .foreign = unknown};
	struct wattle_error error = {0};
	int r = limit_change(question, &outcome, &error);
	if (r < 0)
		return refuse(reply, r, error.text);
	put_outcome(question, &outcome, &reply->outcome);
	return 0;
}

// A holder may check and end its limit even if the policy has changed since it set it.
static bool is_of_holder(const struct question *question)
{
	uint16_t type = question->request->type;
	return (type == PROTO_CHECK || type == PROTO_END) && is_holder(question);
}

int limits_serve(struct limits *limits, const struct client_identity *identity, const struct proto_request *request,
	struct proto_reply *reply)
{
	if (request->number >= limits->devices.n)
		return refuse(reply, -ENOENT, "no device has this number");
	struct question question = {
		.limits = limits,
		.identity = identity,
		.request = request,
		.device = &limits->devices.devices[request->number],
		.held = &limits->held[request->number],
		.least = (double)NAN,
		.most = (double)NAN,
	};
	question.may = may_cap(question.device, identity, &question.least, &question.most);
	if (request->type == PROTO_DEVICE) {
		describe(&question, &reply->device);
		return 0;
	}
	if (!question.may && !is_of_holder(&question))
		return refuse(reply, -EACCES, may_not_limit);
	int r = request->type == PROTO_SET || request->type == PROTO_RESET ? wake(&question, reply) : 0;
	if (r < 0)
		return r;
	if (!question.device->settable && request->type == PROTO_SET)
		return refuse(reply, -EACCES, question.device->why);
	return change(&question, reply);
}
