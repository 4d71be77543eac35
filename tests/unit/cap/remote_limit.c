/* A limit set through a simulated helper: the requests, the effect of the replies, and a helper that dies. */
#include "cap/lease.h"

#include "base/util.h"
#include "fake_helper.h"
#include "rows.h"

#include <errno.h>

struct fixture {
	struct fake_helper helper;
	struct wattle_env env;
	struct cap_device device; // a limit that this process may not set
	struct cap_devices devices;
	struct cap_holder holder;
};

static void make(struct fixture *f)
{
	*f = (struct fixture){0};
	fake_make(&f->helper);
	struct proto_device *row = &f->helper.table->device;
	*row = (struct proto_device){.may_set = 1, .least = 150000, .most = 250000};
	text_copy(row->name, sizeof(row->name), "gpu-0");
	text_copy(row->id, sizeof(row->id), "GPU-1");
	f->helper.table->outcome.outcome = (struct proto_outcome){.previous = 300000,
		.set = 200000,
		.foreign = VALUE_MISSING};
	fake_start(&f->helper);
	f->env = (struct wattle_env){.helper = f->helper.socket, .sysfs_fd = -1, .procfs_fd = -1};
	text_copy(f->env.state_dir, sizeof(f->env.state_dir), "/nonexistent");
	f->device = (struct cap_device){.what = CAP_POWER, .min = 100, .max = 400};
	text_copy(f->device.name, sizeof(f->device.name), "gpu-0");
	text_copy(f->device.id, sizeof(f->device.id), "GPU-1");
	text_copy(f->device.why, sizeof(f->device.why), "only root can set it");
	text_copy(f->device.remedy, sizeof(f->device.remedy), "sudo wattle cap set gpu-0 WATTS");
	f->devices = (struct cap_devices){.devices = &f->device, .n = 1};
	f->holder.env = &f->env;
	cap_owner_self("träin.py", &f->holder.owner);
}

static struct cap_hold *open_hold(struct fixture *f)
{
	struct cap_hold *hold = NULL;
	cap_holds_describe(&f->holder, &f->devices);
	assert_int_equal(cap_hold_open(&f->holder, &f->device, &hold, NULL), 0);
	assert_true(cap_hold_is_remote(hold));
	return hold;
}

static void finish(struct fixture *f)
{
	fake_finish(&f->helper);
}

static void described(void **state)
{
	struct fixture f;
	make(&f);
	f.helper.table->device.lease_pid = 1;
	text_copy(f.helper.table->device.lease_name, sizeof(f.helper.table->device.lease_name), "somebody's");
	cap_holds_describe(&f.holder, &f.devices);
	assert_true(f.device.settable && f.device.is_remote);
	assert_true(f.device.min == 150 && f.device.max == 250);
	assert_string_equal(f.device.why, "");
	assert_string_equal(f.device.lease, "somebody's, pid 1, user root");
	struct cap_hold *hold;
	struct wattle_error error;
	assert_int_equal(cap_hold_open(&f.holder, &f.device, &hold, &error), -EBUSY);
	assert_string_equal(error.text, "gpu-0 is already limited by somebody's, pid 1, user root");
	finish(&f);
}

static void not_for_us(void **state)
{
	struct fixture f;
	make(&f);
	f.helper.table->device.may_set = 0;
	cap_holds_describe(&f.holder, &f.devices);
	assert_false(f.device.settable || f.device.is_remote);
	assert_string_equal(f.device.remedy,
		"sudo wattle cap set gpu-0 WATTS; or, as this user: add a `cap` rule to the policy file of wattled");
	struct cap_hold *hold;
	assert_int_equal(cap_hold_open(&f.holder, &f.device, &hold, NULL), -EACCES);
	finish(&f);
}

static void asked(void **state)
{
	struct fixture f;
	struct cap_outcome outcome;
	make(&f);
	struct cap_hold *hold = open_hold(&f);
	assert_int_equal(cap_hold_set(hold, 200.0004, &outcome, NULL), 0);
	const struct proto_request *last = &f.helper.table->last;
	assert_int_equal(last->type, PROTO_SET);
	assert_int_equal(last->mode, PROTO_LEASE);
	assert_int_equal(last->value, 200000);
	assert_string_equal(last->name, "tr??in.py"); // printable; otherwise the helper disconnects
	assert_true(outcome.previous == 300 && outcome.set == 200 && isnan(outcome.foreign));
	f.helper.table->outcome.outcome.was_foreign = 1;
	assert_int_equal(cap_hold_check(hold, &outcome), 1);
	assert_int_equal(cap_hold_end(hold, &outcome, NULL), 0);
	assert_int_equal(last->type, PROTO_END);
	assert_int_equal(cap_hold_set_persistent(&f.holder, &f.device, 180, 1500 * NS_PER_MS, &outcome, NULL), 0);
	assert_int_equal(last->mode, PROTO_PERSISTENT);
	assert_int_equal(last->for_s, 2);
	assert_int_equal(cap_hold_reset(&f.holder, &f.device, true, &outcome, NULL), 0);
	assert_int_equal(last->type, PROTO_RESET);
	assert_int_equal(last->mode, 1);
	finish(&f);
}

static void no_limits(void **state)
{
	static const double values[] = {0, -5, 1e300, NAN, INFINITY};
	struct fixture f;
	struct cap_outcome outcome;
	make(&f);
	struct cap_hold *hold = open_hold(&f);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_int_equal(cap_hold_set(hold, values[i], &outcome, NULL), -ERANGE);
	assert_int_equal(f.helper.table->n_asked[PROTO_SET], 0);
	assert_int_equal(cap_hold_end(hold, &outcome, NULL), 0);
	assert_int_equal(f.helper.table->n_asked[PROTO_END], 0); // no limit was begun
	finish(&f);
}

static void refused(void **state)
{
	struct fixture f;
	struct cap_outcome outcome;
	struct wattle_error error;
	make(&f);
	struct cap_hold *hold = open_hold(&f);
	f.helper.table->outcome.code = -ERANGE;
	text_copy(f.helper.table->outcome.outcome.text, PROTO_TEXT_SIZE, "gpu-0: 300 W is not within 150 to 250 W");
	assert_int_equal(cap_hold_set(hold, 300, &outcome, &error), -ERANGE);
	assert_string_equal(error.text, "gpu-0: 300 W is not within 150 to 250 W");
	assert_int_equal(cap_hold_end(hold, &outcome, NULL), 0);
	finish(&f);
}

static void helper_dies(void **state)
{
	struct fixture f;
	struct cap_outcome outcome;
	make(&f);
	struct cap_hold *hold = open_hold(&f);
	assert_int_equal(cap_hold_set(hold, 200, &outcome, NULL), 0);
	struct pollfd watched = {.fd = cap_hold_fd(hold), .events = POLLIN};
	assert_int_equal(poll(&watched, 1, 0), 0);
	fake_kill(&f.helper);
	assert_int_equal(poll(&watched, 1, 5000), 1);
	assert_int_equal(cap_hold_check(hold, &outcome), -EPIPE);
	assert_string_equal(outcome.text,
		"gpu-0: the helper ended, and this limit with it; its guard restores the previous limit");
	assert_int_equal(cap_hold_fd(hold), -1);
	assert_int_equal(cap_hold_check(hold, &outcome), -EPIPE);
	assert_string_equal(outcome.text, ""); // told to stop
	// The next helper takes a new lease.
	fake_start(&f.helper);
	assert_int_equal(cap_hold_set(hold, 190, &outcome, NULL), 0);
	assert_int_equal(cap_hold_check(hold, &outcome), 0);
	assert_int_equal(cap_hold_end(hold, &outcome, NULL), 0);
	assert_int_equal(f.helper.table->n_asked[PROTO_END], 1);
	finish(&f);
}

static void helper_was_started_anew(void **state)
{
	struct fixture f;
	struct cap_outcome outcome;
	make(&f);
	struct cap_hold *hold = open_hold(&f);
	assert_int_equal(cap_hold_set(hold, 200, &outcome, NULL), 0);
	fake_kill(&f.helper);
	fake_start(&f.helper);
	f.helper.table->outcome.code = -ENOENT; // reply of wattled for a lease that it does not have
	assert_int_equal(cap_hold_check(hold, &outcome), -EPIPE);
	assert_string_equal(outcome.text, "gpu-0: the helper was restarted, which ended this limit");
	assert_int_equal(cap_hold_end(hold, &outcome, NULL), 0);
	finish(&f);
}

static void connection_was_dropped(void **state)
{
	struct fixture f;
	struct cap_outcome outcome;
	make(&f);
	struct cap_hold *hold = open_hold(&f);
	assert_int_equal(cap_hold_set(hold, 200, &outcome, NULL), 0);
	fake_kill(
		&f.helper); // The client sees the same: the helper drops rare users of a connection and keeps the lease.
	fake_start(&f.helper);
	assert_int_equal(cap_hold_check(hold, &outcome), 0);
	assert_true(cap_hold_fd(hold) >= 0);
	assert_int_equal(cap_hold_keep(hold, NULL), 0);
	assert_int_equal(f.helper.table->last.type, PROTO_KEEP);
	finish(&f);
}

static void refused_at_the_door(void **state)
{
	struct fixture f;
	struct cap_outcome outcome;
	make(&f);
	struct cap_hold *hold = open_hold(&f);
	assert_int_equal(cap_hold_set(hold, 200, &outcome, NULL), 0);
	fake_kill(&f.helper);
	fake_start(&f.helper);
	f.helper.table->hello = FAKE_REFUSES;
	int r = cap_hold_check(hold, &outcome);
	assert_true(r < 0 && r != -EPIPE);
	f.helper.table->hello = FAKE_HONEST;
	assert_int_equal(cap_hold_check(hold, &outcome), 0);
	assert_int_equal(cap_hold_end(hold, &outcome, NULL), 0);
	assert_int_equal(f.helper.table->n_asked[PROTO_END], 1);
	finish(&f);
}

static void answer_got_lost(void **state)
{
	struct fixture f;
	struct cap_outcome outcome;
	make(&f);
	struct cap_hold *hold = open_hold(&f);
	f.helper.table->other = FAKE_HANGS_UP;
	assert_int_equal(cap_hold_set(hold, 200, &outcome, NULL), -EPIPE);
	f.helper.table->other = FAKE_HONEST;
	f.helper.table->outcome.code = -ENOENT; // not set
	assert_int_equal(cap_hold_end(hold, &outcome, NULL), 0);
	assert_int_equal(f.helper.table->n_asked[PROTO_END], 1);
	assert_string_equal(outcome.text, "");
	finish(&f);
}

static void no_helper(void **state)
{
	struct fixture f;
	struct wattle_error error;
	struct cap_hold *hold;
	make(&f);
	f.env.helper = "off";
	cap_holds_describe(&f.holder, &f.devices);
	assert_string_equal(f.device.remedy, "sudo wattle cap set gpu-0 WATTS");
	assert_int_equal(cap_hold_open(&f.holder, &f.device, &hold, &error), -EACCES);
	assert_string_equal(error.text,
		"gpu-0 can't be limited: only root can set it; sudo wattle cap set gpu-0 WATTS");
	assert_int_equal(f.helper.table->n_connections, 0);
	finish(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "list: settable devices with the policy's range and the owner of each limit", described);
	ROWS_ADD_ONE(&tests, "device that the policy does not allow: both remedies are named", not_for_us);
	ROWS_ADD_ONE(&tests, "request and reply are in mW", asked);
	ROWS_ADD_ONE(&tests, "invalid limit: not requested", no_limits);
	ROWS_ADD_ONE(&tests, "refusal: the helper's message is shown", refused);
	ROWS_ADD_ONE(&tests, "helper dies: detected at once, reported once, and the next helper takes a limit again",
		helper_dies);
	ROWS_ADD_ONE(&tests, "restarted helper: has no lease of ours", helper_was_started_anew);
	ROWS_ADD_ONE(&tests, "dropped connection: connected again; the lease belongs to the process",
		connection_was_dropped);
	ROWS_ADD_ONE(&tests, "refused on a new connection: the lease still exists", refused_at_the_door);
	ROWS_ADD_ONE(&tests, "limit whose reply never arrived: still released", answer_got_lost);
	ROWS_ADD_ONE(&tests, "helper switched off: limits are set without it", no_helper);
	return rows_run(&tests, "hold_helped");
}
