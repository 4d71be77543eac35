#include "wattle.h"

#include "base/util.h"
#include "lib/cap.h"
#include "lib/tracker.h"

#include <errno.h>
#include <stdio.h>

enum { SIZE_MOST = 65536 };

// State of one call between enter and leave: the session is locked and `error` belongs to this call.
static int enter(struct cap_session **ret_session)
{
	int r = cap_session_enter(ret_session, cap_message_begin());
	if (r < 0)
		return cap_message_end(r);
	cap_message_notice((*ret_session)->recovered);
	(*ret_session)->recovered[0] = '\0';
	return 0;
}

static int leave(int code)
{
	cap_session_leave();
	return cap_message_end(code);
}

/* ---- list, get ---- */

static struct wattle_cap_device unknown_device(const char *name)
{
	struct wattle_cap_device device = {
		.size = sizeof(device),
		.current_w = (double)NAN,
		.default_w = (double)NAN,
		.min_w = (double)NAN,
		.max_w = (double)NAN,
		.enforced_w = (double)NAN,
		.min_mhz = (double)NAN,
		.max_mhz = (double)NAN,
	};
	(void)text_copy(device.device, sizeof(device.device), name);
	return device;
}

static void describe_power(struct wattle_cap_device *device, struct cap_device *found)
{
	struct cap_setting setting;
	if (!found->asleep)                            // reading would wake a sleeping device
		(void)cap_read(found, &setting, NULL); // updates found->current; unreadable values become unknown
	device->current_w = found->current;
	device->default_w = found->default_;
	device->min_w = found->min;
	device->max_w = found->max;
	device->enforced_w = found->enforced;
	device->settable = found->settable;
	(void)text_copy(device->why, sizeof(device->why), found->why);
	(void)text_copy(device->remedy, sizeof(device->remedy), found->remedy);
	(void)text_copy(device->lease, sizeof(device->lease), found->lease);
}

// A device yields one row for power and, where it supports clock limits, one for clocks.
static void describe(struct wattle_cap_device *device, struct cap_device *found)
{
	(void)text_copy(device->name, sizeof(device->name), found->label);
	(void)text_copy(device->id, sizeof(device->id), found->id);
	if (found->what == CAP_POWER) {
		describe_power(device, found);
		return;
	}
	device->min_mhz = found->min;
	device->max_mhz = found->max;
	device->clocks_settable = found->settable;
}

static size_t describe_all(struct cap_session *session, struct wattle_cap_device *rows)
{
	size_t n = 0;
	for (size_t i = 0; i < session->devices.n; i++) {
		struct cap_device *found = &session->devices.devices[i];
		size_t row = 0;
		while (row < n && strcmp(rows[row].device, found->name) != 0)
			row++;
		if (row == n)
			rows[n++] = unknown_device(found->name);
		describe(&rows[row], found);
	}
	for (size_t row = 0; row + 1 < n; row++)
		rows[row].next = &rows[row + 1];
	return n;
}

int wattle_cap_list(struct wattle_cap_device **ret)
{
	struct cap_session *session;
	struct wattle_error *error = cap_message_begin();
	if (ret == NULL)
		return cap_message_end(error_set(error, -EINVAL, "ret must not be NULL"));
	if (is_disabled_by_environment()) {
		*ret = NULL;
		return 0;
	}
	int r = enter(&session);
	if (r < 0)
		return r;
	struct wattle_cap_device *rows = calloc_array(session->devices.n, sizeof(*rows));
	if (rows == NULL)
		return leave(-ENOMEM);
	cap_holds_describe(&session->holder, &session->devices);
	if (describe_all(session, rows) == 0) {
		cap_message_notice(session->devices.absent);
		free(rows);
		rows = NULL;
	}
	*ret = rows;
	return leave(0);
}

void wattle_cap_list_free(struct wattle_cap_device *list)
{
	free(list);
}

static int find_one(struct cap_session *session, const char *name, struct wattle_cap_device *ret_device)
{
	struct wattle_error *error = cap_message_error();
	struct cap_device *found;
	int r = cap_devices_find(&session->devices, name, CAP_POWER, &found, error);
	if (r < 0)
		return r;
	cap_holds_describe(&session->holder, &session->devices);
	*ret_device = unknown_device(found->name);
	for (size_t i = 0; i < session->devices.n; i++)
		if (strcmp(session->devices.devices[i].name, found->name) == 0)
			describe(ret_device, &session->devices.devices[i]);
	struct cap_setting setting;
	return cap_read(found, &setting, error); // a lost device has no limit
}

int wattle_cap_get(const char *device, struct wattle_cap_device *ret)
{
	struct wattle_error *error = cap_message_begin();
	if (device == NULL || ret == NULL || ret->size < sizeof(ret->size) || ret->size > SIZE_MOST)
		return cap_message_end(error_set(error, -EINVAL,
			"device and ret must not be NULL, and ret->size be sizeof(struct wattle_cap_device)"));
	if (strchr(device, ',') != NULL || strcmp(device, "gpus") == 0)
		return cap_message_end(
			error_set(error, -EINVAL, "%s: name one device; wattle_cap_list lists all devices", device));
	struct wattle_cap_device row = unknown_device(device);
	if (!is_disabled_by_environment()) {
		struct cap_session *session;
		int r = enter(&session);
		if (r < 0)
			return r;
		r = leave(find_one(session, device, &row));
		if (r < 0)
			return r;
	}
	row.size = ret->size;
	memcpy(ret, &row, row.size < sizeof(row) ? row.size : sizeof(row));
	return 0;
}

/* ---- set ---- */

struct change {
	struct cap_session *session;
	struct cap_device *device;
	double before; // value of the previous lease; NaN: none
};

static int set_lease(struct change *change, double value, struct wattle_error *reterr)
{
	struct cap_entry *entry = cap_session_entry(change->session, change->device);
	struct cap_outcome outcome = {0};
	bool is_new = entry->hold == NULL;
	change->before = is_new ? (double)NAN : entry->value;
	int r = cap_session_hold(change->session, change->device, reterr);
	if (r < 0)
		return r;
	r = cap_hold_set(entry->hold, value, &outcome, reterr);
	if (r < 0) {
		if (is_new)
			(void)cap_session_release(change->session, change->device, &outcome, NULL);
		return r;
	}
	entry->value = value;
	cap_message_notice(outcome.text);
	return 0;
}

static void undo(const struct change *change)
{
	struct cap_entry *entry = cap_session_entry(change->session, change->device);
	struct cap_outcome outcome;
	if (entry->hold == NULL)
		return;
	if (isnan(change->before))
		(void)cap_session_release(change->session, change->device, &outcome, NULL);
	else if (cap_hold_set(entry->hold, change->before, &outcome, NULL) == 0)
		entry->value = change->before;
}

// Turns an existing lease into the persistent limit, so that the journal keeps the value from before the lease.
static int keep(struct change *change, double value, struct wattle_error *reterr)
{
	struct cap_session *session = change->session;
	struct cap_entry *entry = cap_session_entry(session, change->device);
	struct cap_outcome outcome = {0};
	change->before = (double)NAN;
	if (entry->hold == NULL) {
		int r = cap_hold_set_persistent(&session->holder, change->device, value, 0, &outcome, reterr);
		if (r == 0)
			cap_message_notice(outcome.text);
		return r;
	}
	int r = set_lease(change, value, reterr);
	if (r < 0)
		return r;
	struct cap_hold *hold = entry->hold;
	entry->hold = NULL;
	entry->value = (double)NAN;
	return cap_hold_keep(hold, reterr);
}

static int set_all(struct cap_session *session, struct change *changes, struct cap_device **devices, const char *text,
	double value, unsigned flags)
{
	struct wattle_error *error = cap_message_error();
	enum cap_kind what = flags & WATTLE_CAP_CLOCKS ? CAP_CLOCKS : CAP_POWER;
	size_t n = 0;
	int r = cap_choose(session, text, what, devices, &n, error);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		changes[i] = (struct change){.session = session, .device = devices[i]};
		r = flags & WATTLE_CAP_KEEP ? keep(&changes[i], value, error) : set_lease(&changes[i], value, error);
		if (r == 0)
			continue;
		while (!(flags & WATTLE_CAP_KEEP) && i-- > 0)
			undo(&changes[i]);
		return r;
	}
	return 0;
}

int wattle_cap_set(const char *device, double value, unsigned flags)
{
	struct wattle_error *error = cap_message_begin();
	if (flags & ~(WATTLE_CAP_KEEP | WATTLE_CAP_CLOCKS))
		return cap_message_end(error_set(error, -EINVAL,
			"flags %#x are not valid; set accepts WATTLE_CAP_KEEP and WATTLE_CAP_CLOCKS", flags));
	if (is_disabled_by_environment())
		return 0;
	if (!isfinite(value) || value <= 0)
		return cap_message_end(
			error_set(error, -EINVAL, "a limit of %g is not valid; give a number above 0", value));
	struct cap_session *session;
	int r = enter(&session);
	if (r < 0)
		return r;
	struct change *changes = calloc_array(session->devices.n, sizeof(*changes));
	struct cap_device **devices = calloc_array(session->devices.n, sizeof(struct cap_device *));
	r = changes != NULL && devices != NULL ? set_all(session, changes, devices, device, value, flags) : -ENOMEM;
	free(changes);
	free(devices);
	return leave(r);
}

/* ---- reset ---- */

static int reset_one(struct cap_session *session, struct cap_device *device, bool to_default,
	struct wattle_error *reterr)
{
	struct cap_entry *entry = cap_session_entry(session, device);
	struct cap_outcome outcome = {0};
	if (entry->is_searched)
		return cap_session_hold(session, device, reterr); // -EBUSY with a message
	bool was_ours = entry->hold != NULL;
	int r = was_ours ? cap_session_release(session, device, &outcome, reterr) : 0;
	if (r == 0 && (!was_ours || to_default)) {
		cap_message_notice(was_ours ? outcome.text : "");
		r = cap_hold_reset(&session->holder, device, to_default, &outcome, reterr);
	}
	// Having nothing to restore is success: the device is in the requested state.
	if (r == 0 && (was_ours || outcome.was_foreign))
		cap_message_notice(outcome.text);
	return r;
}

static int reset_ours(struct cap_session *session, bool to_default, struct wattle_error *reterr)
{
	int first = 0;
	for (size_t i = 0; i < session->devices.n; i++) {
		if (session->entries[i].hold == NULL)
			continue;
		int r = reset_one(session, &session->devices.devices[i], to_default, first == 0 ? reterr : NULL);
		first = first < 0 ? first : r;
	}
	return first;
}

static int reset_named(struct cap_session *session, const char *text, enum cap_kind what, bool to_default,
	struct wattle_error *reterr)
{
	struct cap_device **devices = calloc_array(session->devices.n, sizeof(struct cap_device *));
	size_t n = 0;
	int first = devices != NULL ? cap_choose(session, text, what, devices, &n, reterr) : -ENOMEM;
	for (size_t i = 0; i < n; i++) { // continue after a failure so that the other devices are reset
		int r = reset_one(session, devices[i], to_default, first == 0 ? reterr : NULL);
		first = first < 0 ? first : r;
	}
	free(devices);
	return first;
}

int wattle_cap_reset(const char *device, unsigned flags)
{
	struct wattle_error *error = cap_message_begin();
	if (flags & ~(WATTLE_CAP_CLOCKS | WATTLE_CAP_DEFAULT))
		return cap_message_end(error_set(error, -EINVAL,
			"flags %#x are not valid; reset accepts WATTLE_CAP_CLOCKS and WATTLE_CAP_DEFAULT", flags));
	if (is_disabled_by_environment())
		return 0;
	struct cap_session *session;
	int r = enter(&session);
	if (r < 0)
		return r;
	bool to_default = flags & WATTLE_CAP_DEFAULT;
	if (device == NULL)
		return leave(reset_ours(session, to_default, error));
	return leave(
		reset_named(session, device, flags & WATTLE_CAP_CLOCKS ? CAP_CLOCKS : CAP_POWER, to_default, error));
}
