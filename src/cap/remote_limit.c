/* Limits set through the helper, for devices that this process may not change. The helper has the lease and this
 * process is its owner. The lease lasts as long as this process, independent of the connection. It ends with the
 * helper, whose guard restores the previous limit. */
#include "cap/internal.h"

#include "base/util.h"
#include "cap/journal.h"
#include "proto/client.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

// A change may wake a GPU, which takes NVML seconds, and requests queue behind the changes of others.
enum { CHANGE_MS = 20000 };

struct is_remote {
	struct proto_client client;
	const struct wattle_env *env;    // borrowed
	const struct cap_device *device; // borrowed
	char owner[24];
	uint32_t number; // index of the device in the device table of the connected helper
	bool has_lease;  // as far as known
	bool is_lost;    // the lease ended with its helper, and the caller was informed
	bool is_uncertain; // has_lease, but no answer arrived
};

/* ---- device table of the helper ---- */

static double scale(const struct cap_device *device)
{
	return device->what == CAP_POWER ? 1e3 : 1; // mW and MHz in the protocol
}

static double from_wire(const struct cap_device *device, int64_t value)
{
	return value_to_double(value, 1 / scale(device));
}

static bool is_row_of(const struct proto_device *row, const struct cap_device *device)
{
	if (row->what != (uint32_t)device->what)
		return false;
	bool has_ids = row->id[0] != '\0' && device->id[0] != '\0'; // the id of a sleeping GPU may be unknown
	return strcmp(has_ids ? row->id : row->name, has_ids ? device->id : device->name) == 0;
}

static int request_row(struct proto_client *client, uint32_t number, struct proto_device *ret_row,
	struct wattle_error *reterr)
{
	struct proto_request request = {.type = PROTO_DEVICE, .number = number};
	struct proto_reply reply;
	int r = proto_client_request(client, &request, CHANGE_MS, &reply, reterr);
	if (r == 0)
		*ret_row = reply.device;
	return r;
}

static int find_row(struct proto_client *client, const struct proto_hello *hello, const struct cap_device *device,
	uint32_t *ret_number, struct proto_device *ret_row, struct wattle_error *reterr)
{
	for (uint32_t i = 0; i < hello->n_devices; i++) {
		struct proto_device row;
		int r = request_row(client, i, &row, reterr);
		if (r < 0)
			return r;
		if (!is_row_of(&row, device))
			continue;
		*ret_number = i;
		*ret_row = row;
		return 0;
	}
	return error_set(reterr, -ENODEV, "the helper does not have %s, or can't limit its %s", device->name,
		cap_kind_name(device->what));
}

// (Re)connects and finds the device's index.
static int connect_helper(struct is_remote *is_remote, struct proto_device *ret_row, struct wattle_error *reterr)
{
	struct proto_hello hello;
	proto_client_close(&is_remote->client);
	int r = proto_client_open(&is_remote->client, is_remote->env, &hello, reterr);
	if (r == 0)
		r = find_row(&is_remote->client, &hello, is_remote->device, &is_remote->number, ret_row, reterr);
	if (r < 0)
		proto_client_close(&is_remote->client);
	return r;
}

// The name appears in the helper's log and in messages to other users. The helper closes the connection on unprintable
// characters.
static void take_name(const char *name, char out[24])
{
	text_copy(out, 24, name);
	for (char *at = out; *at != '\0'; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

static void init(struct is_remote *is_remote, const struct cap_holder *holder, const struct cap_device *device)
{
	*is_remote = (struct is_remote){.client.fd = -1, .env = holder->env, .device = device};
	take_name(holder->owner.name, is_remote->owner);
}

/* The helper closes idle connections. If the connection is closed, this reconnects and repeats the request, which is
 * idempotent: the lease belongs to the process, not to the connection. */
static int send_request(struct is_remote *is_remote, struct proto_request *request, struct proto_reply *ret_reply,
	struct wattle_error *reterr)
{
	struct proto_device row;
	memcpy(request->name, is_remote->owner, sizeof(request->name));
	request->number = is_remote->number;
	int r = proto_client_request(&is_remote->client, request, CHANGE_MS, ret_reply, reterr);
	if ((r != -EPIPE && r != -ENOTCONN) || proto_client_is_open(&is_remote->client))
		return r;
	r = connect_helper(is_remote, &row, reterr);
	if (r < 0)
		return r;
	request->number = is_remote->number;
	return proto_client_request(&is_remote->client, request, CHANGE_MS, ret_reply, reterr);
}

static void take_outcome(const struct cap_device *device, const struct proto_outcome *from, struct cap_outcome *to)
{
	*to = (struct cap_outcome){
		.previous = from_wire(device, from->previous),
		.set = from_wire(device, from->set),
		.foreign = from_wire(device, from->foreign),
		.was_foreign = from->was_foreign != 0,
		.was_rounded = from->was_rounded != 0,
	};
	text_copy(to->text, sizeof(to->text), from->text);
}

static int change(struct is_remote *is_remote, struct proto_request *request, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct proto_reply reply;
	int r = send_request(is_remote, request, &reply, reterr);
	if (r == 0)
		take_outcome(is_remote->device, &reply.outcome, ret_outcome);
	return r;
}

static int put_value(const struct cap_device *device, double value, struct proto_request *request,
	struct wattle_error *reterr)
{
	double scaled = value * scale(device);
	if (!(scaled > 0 && scaled < 1e12))
		return error_set(reterr, -ERANGE, "%s: %g %s is not a valid limit", device->name, value,
			cap_kind_unit(device->what));
	request->value = llround(scaled);
	return 0;
}

/* ---- permissions of the helper ---- */

static void describe_row(struct cap_device *device, const struct proto_device *row)
{
	if (device->lease[0] == '\0' && row->lease_name[0] != '\0') {
		struct cap_owner owner = {.pid = (pid_t)row->lease_pid, .uid = row->lease_uid};
		text_copy(owner.name, sizeof(owner.name), row->lease_name);
		cap_owner_describe(&owner, device->lease, sizeof(device->lease));
	}
	if (device->settable || row->may_set == 0)
		return;
	device->settable = device->is_remote = true;
	device->why[0] = device->remedy[0] = '\0';
	device->min = fmax(device->min, from_wire(device, row->least)); // NaN if neither knows
	device->max = fmin(device->max, from_wire(device, row->most));
	if (device->hint[0] == '\0')
		text_copy(device->hint, sizeof(device->hint), "set by the helper");
}

// Names the helper as an alternative in the remedy of devices that are not settable but have a remedy.
static void name_helper(struct cap_device *device, int code)
{
	static const char between[] = "; or, as this user: ";
	char remedy[sizeof(device->remedy)];
	// Membership of group wattle allows reading only.
	const char *helper = code == -EPERM ? "add a `cap` rule to the policy file of wattled"
					    : proto_client_remedy(code);
	if (device->settable || device->asleep || device->remedy[0] == '\0' || helper[0] == '\0')
		return;
	text_copy(remedy, sizeof(remedy), device->remedy);
	char *named_before = strstr(remedy, between); // long-lived programs call this repeatedly
	if (named_before != NULL)
		*named_before = '\0';
	snprintf(device->remedy, sizeof(device->remedy), "%.90s%s%.80s", remedy, between, helper);
}

static int describe_all(struct proto_client *client, const struct proto_hello *hello, struct cap_devices *devices)
{
	for (uint32_t number = 0; number < hello->n_devices; number++) {
		struct proto_device row;
		int r = request_row(client, number, &row, NULL);
		if (r < 0)
			return r;
		for (size_t i = 0; i < devices->n; i++)
			if (is_row_of(&row, &devices->devices[i]))
				describe_row(&devices->devices[i], &row);
	}
	return -EPERM; // a device that is still not settable was refused by the helper's policy
}

static void describe(const struct cap_holder *holder, struct cap_devices *devices)
{
	struct proto_client client;
	struct proto_hello hello;
	bool all_settable = true;
	for (size_t i = 0; i < devices->n; i++)
		all_settable &= devices->devices[i].settable;
	if (all_settable)
		return;
	int r = proto_client_open(&client, holder->env, &hello, NULL);
	if (r == 0)
		r = describe_all(&client, &hello, devices);
	proto_client_close(&client);
	for (size_t i = 0; i < devices->n; i++)
		name_helper(&devices->devices[i], r);
}

// Describes again a GPU that was asleep when first described: more is known now.
static bool can_set(const struct cap_holder *holder, const struct cap_device *device)
{
	struct is_remote is_remote;
	struct proto_device row;
	if (device->settable || device->is_remote)
		return device->is_remote;
	init(&is_remote, holder, device);
	bool yes = connect_helper(&is_remote, &row, NULL) == 0 && row.may_set != 0;
	proto_client_close(&is_remote.client);
	return yes;
}

/* ---- leases ---- */

static int check_free(const struct cap_device *device, const struct proto_device *row, struct wattle_error *reterr)
{
	char text[160];
	struct cap_owner owner = {.pid = (pid_t)row->lease_pid, .uid = row->lease_uid};
	if (row->lease_name[0] == '\0' || owner.pid == getpid())
		return 0;
	text_copy(owner.name, sizeof(owner.name), row->lease_name);
	cap_owner_describe(&owner, text, sizeof(text));
	return error_set(reterr, -EBUSY, "%s is already limited by %s", device->name, text);
}

static int open_remote(const struct cap_holder *holder, struct cap_device *device, void **ret_state,
	struct wattle_error *reterr)
{
	struct proto_device row;
	struct is_remote *is_remote = calloc(1, sizeof(*is_remote));
	if (is_remote == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	init(is_remote, holder, device);
	int r = connect_helper(is_remote, &row, reterr);
	if (r == 0)
		r = check_free(device, &row, reterr);
	if (r < 0) {
		proto_client_close(&is_remote->client);
		free(is_remote);
		return r;
	}
	*ret_state = is_remote;
	return 0;
}

static int set(void *state, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct is_remote *is_remote = state;
	struct proto_request request = {.type = PROTO_SET, .mode = PROTO_LEASE};
	int r = put_value(is_remote->device, value, &request, reterr);
	if (r < 0)
		return r;
	r = change(is_remote, &request, ret_outcome, reterr);
	bool is_unheard = r == -ETIMEDOUT || r == -EPIPE; // the limit may be set nevertheless; end() then ends the lease
	if (r < 0 && !is_unheard)
		return r;
	is_remote->is_uncertain = r < 0 && (is_remote->is_uncertain || !is_remote->has_lease);
	is_remote->has_lease = true;
	is_remote->is_lost = false;
	return r;
}

/* Whether a failed request means that the lease ended with its helper. A helper that hangs, is full or returns an error
 * still has it; so does one that this process can't reach for lack of descriptors or memory. */
static bool ended_with_helper(const struct is_remote *is_remote, int code)
{
	bool answers = proto_client_is_open(&is_remote->client);
	switch (code) {
	case -ENOENT: // no socket, or a helper without such a lease
		return true;
	case -EPIPE:
	case -ECONNREFUSED:
	case -EPROTO:
	case -ENODEV: // another helper without this device
		return !answers;
	default:
		return false;
	}
}

static const char *result_of_reply(const struct is_remote *is_remote)
{
	return proto_client_is_open(&is_remote->client)
		? "the helper was restarted, which ended this limit"
		: "the helper ended, and this limit with it; its guard restores the previous limit";
}

static int check(void *state, struct cap_outcome *ret_outcome)
{
	struct is_remote *is_remote = state;
	struct proto_request request = {.type = PROTO_CHECK};
	struct wattle_error error = {0};
	*ret_outcome = (struct cap_outcome){.previous = (double)NAN, .set = (double)NAN, .foreign = (double)NAN};
	if (!is_remote->has_lease)
		return is_remote->is_lost ? -EPIPE : 0;
	int r = change(is_remote, &request, ret_outcome, &error);
	if (r == 0)
		return ret_outcome->was_foreign;
	if (!ended_with_helper(is_remote, r)) {
		text_copy(ret_outcome->text, sizeof(ret_outcome->text), error.text);
		return r;
	}
	is_remote->has_lease = false;
	is_remote->is_lost = true;
	snprintf(ret_outcome->text, sizeof(ret_outcome->text), "%s: %s", is_remote->device->name,
		result_of_reply(is_remote));
	return -EPIPE;
}

// Readable when the helper closed the connection: it died, or it dropped an idle connection.
static int fd(const void *state)
{
	const struct is_remote *is_remote = state;
	return is_remote->has_lease && proto_client_is_open(&is_remote->client) ? is_remote->client.fd : -1;
}

static int finish(struct is_remote *is_remote, enum proto_type type, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct proto_request request = {.type = (uint16_t)type};
	struct wattle_error error = {0};
	int r = is_remote->has_lease ? change(is_remote, &request, ret_outcome, &error)
		: is_remote->is_lost ? -EPIPE
				     : 0;
	if (r < 0 && is_remote->has_lease && ended_with_helper(is_remote, r))
		r = error_set(reterr, -EPIPE, "%s: %s", is_remote->device->name, result_of_reply(is_remote));
	else if (r < 0)
		error_set(reterr, r, "%s",
			is_remote->has_lease ? error.text : "the limit had already ended with the helper");
	return r;
}

static void forget(struct is_remote *is_remote)
{
	proto_client_close(&is_remote->client);
	free(is_remote);
}

static int end(void *state, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct is_remote *is_remote = state;
	struct wattle_error error = {0};
	*ret_outcome = (struct cap_outcome){.previous = (double)NAN, .set = (double)NAN, .foreign = (double)NAN};
	int r = finish(is_remote, PROTO_END, ret_outcome, &error);
	// The lease is over, as requested. Report once that it ended with the helper.
	if (r == -EPIPE && !is_remote->is_lost && !is_remote->is_uncertain)
		text_copy(ret_outcome->text, sizeof(ret_outcome->text), error.text);
	else if (r < 0 && r != -EPIPE)
		error_set(reterr, r, "%s", error.text);
	forget(is_remote);
	return r == -EPIPE ? 0 : r;
}

static int keep(void *state, struct wattle_error *reterr)
{
	struct is_remote *is_remote = state;
	struct cap_outcome outcome;
	int r = finish(is_remote, PROTO_KEEP, &outcome, reterr);
	forget(is_remote);
	return r;
}

static void disown(void *state)
{
	forget(state); // closes the child's copy of the descriptor; the lease is the parent's
}

/* ---- persistent limits ---- */

static int once(const struct cap_holder *holder, struct cap_device *device, struct proto_request *request,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct is_remote is_remote;
	struct proto_device row;
	init(&is_remote, holder, device);
	int r = connect_helper(&is_remote, &row, reterr);
	if (r == 0)
		r = change(&is_remote, request, ret_outcome, reterr);
	proto_client_close(&is_remote.client);
	return r;
}

static int set_persistent(const struct cap_holder *holder, struct cap_device *device, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct proto_request request = {.type = PROTO_SET, .mode = PROTO_PERSISTENT};
	int64_t for_s = (for_ns + NS_PER_S - 1) / NS_PER_S;
	if (for_s > UINT32_MAX)
		return error_set(reterr, -ERANGE, "%s: the helper does not hold a limit for that long", device->name);
	request.for_s = (uint32_t)for_s;
	int r = put_value(device, value, &request, reterr);
	return r < 0 ? r : once(holder, device, &request, ret_outcome, reterr);
}

static int reset(const struct cap_holder *holder, struct cap_device *device, bool to_default,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct proto_request request = {.type = PROTO_RESET, .mode = to_default};
	return once(holder, device, &request, ret_outcome, reterr);
}

// For a timed limit, the helper's reset ends only that limit.
static int end_timed(const struct cap_holder *holder, struct cap_device *device, struct wattle_error *reterr)
{
	struct cap_outcome outcome;
	return reset(holder, device, false, &outcome, reterr);
}

const struct limit_ops remote_limit_ops = {
	.describe = describe,
	.can_set = can_set,
	.open = open_remote,
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
