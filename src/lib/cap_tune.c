#include "wattle.h"

#include "base/util.h"
#include "lib/cap.h"
#include "lib/tracker.h"

#include <errno.h>
#include <unistd.h>

enum { SIZE_MOST = 65536, LIMITS_DEFAULT = 8 };
static const double FROM_DEFAULT_PERCENT = 30, SECONDS_DEFAULT = 30, SECONDS_MAX = 86400;

/* ---- options ---- */

static int check_options(const struct wattle_cap_tune_options *o, struct wattle_error *reterr)
{
	if (o->goal < WATTLE_CAP_ED2P || o->goal > WATTLE_CAP_SLOWDOWN)
		return error_set(reterr, -EINVAL, "goal %d is not valid; valid are 0 to %d", o->goal,
			WATTLE_CAP_SLOWDOWN);
	if (!(o->slowdown_percent >= 0 && o->slowdown_percent <= 1000))
		return error_set(reterr, -EINVAL, "a slowdown of %g %% is not valid; valid are 0 to 1000",
			o->slowdown_percent);
	if (o->n_limits != 0 && (o->n_limits < 2 || o->n_limits > SEARCH_LIMITS_MAX))
		return error_set(reterr, -EINVAL, "%zu limits can't be compared; valid are 2 to %d", o->n_limits,
			SEARCH_LIMITS_MAX);
	if (!(o->from_percent > 0 && o->from_percent < 100))
		return error_set(reterr, -EINVAL,
			"the lowest limit of %g %% of the default is not valid; valid are above 0 and below "
			"100", o->from_percent);
	if (!(o->seconds > 0 && o->seconds <= SECONDS_MAX))
		return error_set(reterr, -EINVAL, "%g s for each limit is not valid; valid are above 0, up to %g",
			o->seconds, SECONDS_MAX);
	if (!(o->settle_s >= 0 && o->settle_s <= SECONDS_MAX))
		return error_set(reterr, -EINVAL, "a settling time of %g s is not valid; valid are 0 to %g",
			o->settle_s, SECONDS_MAX);
	return 0;
}

// Rejects options of a newer program that this version would ignore: members beyond the known size must be 0.
static bool is_of_our_time(const struct wattle_cap_tune_options *options)
{
	if (options->size < sizeof(options->size) || options->size > SIZE_MOST)
		return false;
	for (size_t at = sizeof(*options); at < options->size; at++)
		if (((const char *)options)[at] != 0)
			return false;
	return true;
}

static int take_options(const struct wattle_cap_tune_options *options, struct wattle_cap_tune_options *ret_options,
	struct wattle_error *reterr)
{
	struct wattle_cap_tune_options own = {0};
	if (options != NULL) {
		if (!is_of_our_time(options))
			return error_set(reterr, -EINVAL,
				"the size of the options is not set, or belongs to a newer wattle");
		memcpy(&own, options, options->size < sizeof(own) ? options->size : sizeof(own));
	}
	own.size = sizeof(own);
	if (own.from_percent == 0)
		own.from_percent = FROM_DEFAULT_PERCENT;
	if (own.seconds == 0)
		own.seconds = SECONDS_DEFAULT;
	int r = check_options(&own, reterr);
	if (r == 0)
		*ret_options = own;
	return r;
}

/* ---- preparation and cleanup ---- */

// Range of limits valid for all devices: highest minimum to lowest default.
static int find_limits(struct cap_search *search, struct wattle_error *reterr)
{
	double min = 0, max = INFINITY, default_ = INFINITY;
	for (size_t i = 0; i < search->n_devices; i++) {
		const struct cap_device *device = search->devices[i];
		double top = !isnan(device->default_) ? device->default_ : device->max;
		min = fmax(min, device->min);
		max = fmin(max, device->max);
		default_ = fmin(default_, isnan(top) ? device->current : top);
	}
	size_t n = search->options.n_limits != 0 ? search->options.n_limits : LIMITS_DEFAULT;
	int r = -ERANGE;
	if (isfinite(max) && isfinite(default_))
		r = tune_candidates(min, max, default_, search->options.from_percent, n, search->limits,
			&search->n_limits);
	if (r == -ERANGE)
		error_set(reterr, r, "%s: its range (%g to %g %s, default %g) does not contain two limits to compare",
			search->devices[0]->name, min, max, cap_kind_unit(search->what), default_);
	return r;
}

static int hold_all(struct cap_search *search, struct wattle_error *reterr)
{
	for (; search->n_held < search->n_devices; search->n_held++) {
		struct cap_device *device = search->devices[search->n_held];
		struct cap_entry *entry = cap_session_entry(search->session, device);
		search->before[search->n_held] = entry->value;
		int r = cap_session_hold(search->session, device, reterr);
		if (r < 0)
			return r;
		entry->is_searched = true;
		entry->searcher = pthread_self();
	}
	return 0;
}

// Restores the previous state of all devices, continuing after a failure.
static int release_all(struct cap_search *search, struct wattle_error *reterr)
{
	int first = 0;
	for (size_t i = 0; i < search->n_held; i++) {
		struct cap_entry *entry = cap_session_entry(search->session, search->devices[i]);
		struct cap_outcome outcome = {0};
		struct wattle_error *error = first == 0 ? reterr : NULL;
		bool was_ours = !isnan(search->before[i]);
		entry->is_searched = false;
		int r = was_ours ? cap_hold_set(entry->hold, search->before[i], &outcome, error)
				 : cap_session_release(search->session, search->devices[i], &outcome, error);
		if (was_ours)
			entry->value = search->before[i];
		if (outcome.was_foreign)
			cap_message_notice(outcome.text);
		first = first < 0 ? first : r;
	}
	search->n_held = 0;
	return first;
}

// Limit in force; NaN: unknown, or not the same on all devices.
static double read_previous(struct cap_search *search)
{
	double previous = (double)NAN;
	for (size_t i = 0; i < search->n_devices; i++) {
		struct cap_setting setting;
		double current = (double)NAN;
		if (cap_read(search->devices[i], &setting, NULL) == 0)
			current = search->devices[i]->current;
		previous = i == 0 || previous == current ? current : (double)NAN;
	}
	return previous;
}

static int choose(struct cap_search *search, const char *device, struct wattle_error *reterr)
{
	size_t n = search->session->devices.n;
	search->devices = calloc_array(n, sizeof(struct cap_device *));
	search->before = calloc_array(n, sizeof(double));
	if (search->devices == NULL || search->before == NULL)
		return -ENOMEM;
	int r = cap_choose(search->session, device, search->what, search->devices, &search->n_devices, reterr);
	if (r < 0)
		return r;
	cap_holds_describe(&search->session->holder,
		&search->session->devices); // the helper may allow a smaller range than the device
	return find_limits(search, reterr);
}

static int prepare(struct cap_search *search, const char *device, struct wattle_error *reterr)
{
	int r = choose(search, device, reterr);
	if (r < 0)
		return r;
	r = cap_meter_open(&search->session->env, search->devices, search->n_devices, &search->meter, reterr);
	if (r < 0)
		return r;
	const struct tune_options options = {
		.goal = (enum tune_goal)search->options.goal,
		.slowdown_percent = search->options.slowdown_percent,
		.seconds = search->options.seconds,
		.seed = search->options.seed,
		.adds_limits = search->options.n_limits == 0,
	};
	r = tuner_new(&options, search->limits, search->n_limits, &search->tuner);
	if (r == -ENOSYS)
		error_set(reterr, r, "this program was linked statically without -lcminpack, which the search needs");
	return r < 0 ? r : hold_all(search, reterr);
}

// Frees the search. A forked child does not have the meter's thread and must not join it.
static void forget(struct cap_search *search)
{
	if (getpid() == search->owner)
		cap_meter_close(search->meter);
	tuner_free(search->tuner);
	free(search->devices);
	free(search->before);
}

/* ---- the call ---- */

static int begin(struct cap_search *search, const char *device, double *ret_previous, struct wattle_error *reterr)
{
	int r = cap_session_enter(&search->session, reterr);
	if (r < 0)
		return r;
	cap_message_notice(search->session->recovered);
	search->session->recovered[0] = '\0';
	r = prepare(search, device, reterr);
	if (r == 0)
		*ret_previous = read_previous(search);
	else
		(void)release_all(search, NULL);
	cap_session_leave();
	return r;
}

static int end(struct cap_search *search, struct wattle_error *reterr)
{
	struct cap_session *session;
	int r = cap_session_enter(&session, reterr);
	if (r < 0)
		return r;
	r = release_all(search, reterr);
	cap_session_leave();
	return r;
}

static int tune(struct cap_search *search, const char *device, struct wattle_cap_tune_result *ret_result,
	struct wattle_error *reterr)
{
	double previous = (double)NAN;
	int r = begin(search, device, &previous, reterr);
	if (r < 0)
		return r;
	r = cap_search_run(search, reterr);
	if (getpid() != search->owner)
		return error_set(reterr, -EBADF,
			"step returned in a forked child; only the parent can continue the search");
	struct wattle_error back = {0};
	int released = end(search, &back);
	if (released < 0 && (r < 0 || search->ended_by != 0))
		cap_message_notice(back.text);
	if (search->ended_by < 0)
		return error_set(reterr, search->ended_by, "step or progress ended the search with %d",
			search->ended_by);
	if (search->ended_by > 0)
		return search->ended_by;
	if (r == 0 && released < 0)
		return error_set(reterr, released, "%s", back.text);
	return r < 0 ? r : cap_search_result(search, previous, ret_result, reterr);
}

static struct wattle_cap_tune_result unknown_result(size_t size)
{
	const struct wattle_cap_interval unknown = {(double)NAN, (double)NAN, (double)NAN};
	return (struct wattle_cap_tune_result){
		.size = size,
		.chosen = (double)NAN,
		.previous = (double)NAN,
		.saving_percent = unknown,
		.slowdown_percent = unknown,
		.chosen_range = unknown,
		.residual_percent = (double)NAN,
		.noise_percent = (double)NAN,
		.drift_percent = (double)NAN,
		.note = "WATTLE_DISABLE=1: nothing was measured",
	};
}

int wattle_cap_tune(const char *device, const struct wattle_cap_tune_options *options, int (*step)(void *data),
	void *data, struct wattle_cap_tune_result *ret)
{
	struct wattle_error *error = cap_message_begin();
	if (device == NULL || step == NULL || ret == NULL || ret->size < sizeof(*ret) || ret->size > SIZE_MOST)
		return cap_message_end(error_set(error, -EINVAL,
			"device, step and ret must not be NULL, and ret->size be sizeof(struct wattle_cap_tune_result)"));
	struct cap_search search = {.step = step, .data = data, .owner = getpid()};
	int r = take_options(options, &search.options, error);
	if (r < 0)
		return cap_message_end(r);
	if (is_disabled_by_environment()) {
		struct wattle_cap_tune_result unknown = unknown_result(ret->size);
		memcpy(ret, &unknown, sizeof(unknown));
		return 0;
	}
	search.what = search.options.clocks ? CAP_CLOCKS : CAP_POWER;
	// Other wattle_cap calls from step or progress overwrite this thread's message, so the search keeps its own
	// error.
	struct wattle_error own = {0};
	r = tune(&search, device, ret, &own);
	forget(&search);
	if (r < 0 && error != NULL)
		*error = own;
	return r < 0 ? cap_message_end(r) : r;
}
