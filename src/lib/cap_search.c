#include "lib/cap.h"

#include "base/clock.h"
#include "base/util.h"


#include <assert.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW_BEGIN, WINDOW_END, WAIT_BEGIN, WAIT_END }; // marks of the meter
static_assert((int)WAIT_END < (int)TRACK_MARKS, "one mark per instant");

/* Power is steady when two consecutive stretches, each with a minimum number of counter updates, differ by no more than
 * this fraction. Drivers need about 100 ms to apply a limit, so no stretch is shorter; steady.c detects slower ones. */
static const double STEADY = 0.03;
static const int64_t INTERVAL_NS = NS_PER_S / 2, WAIT_MAX_NS = 6 * NS_PER_S;
enum { INTERVAL_UPDATES = 3 };
// Counters with a longer update interval are not worth reading.
static const int64_t UPDATE_MAX_NS = 2 * NS_PER_S;
/* At the end of a window, steps continue until the counter's next update, so that the measured power is that of the
 * work. If a step takes longer than this, the search waits for the update idle: that costs less and the error is
 * negligible. */
static const int64_t STEP_SHORT_NS = NS_PER_S / 2;
enum { UNKNOWN_MAX = 3 };

/* ---- steps ---- */

// False: the caller has no more steps, or the search must end.
static bool do_step(struct cap_search *search)
{
	int64_t begin_ns = clock_now_ns();
	int r = search->step(search->data);
	search->step_ns = clock_now_ns() - begin_ns;
	if (getpid() != search->owner)
		r = -EBADF;
	if (r == 0)
		search->n_steps++;
	else if (r == WATTLE_CAP_NO_MORE)
		search->no_more = true;
	else
		search->ended_by = r;
	return r == 0;
}

static bool is_over(const struct cap_search *search)
{
	return search->no_more || search->ended_by != 0;
}

static void synchronize(const struct cap_search *search)
{
	if (search->options.synchronize != NULL)
		search->options.synchronize(search->data);
}

static int64_t mark(const struct cap_search *search, size_t number)
{
	synchronize(search);
	return cap_meter_mark(search->meter, number);
}

// Runs steps or waits until the counters have covered both marks. False: the counters do not update, or the search is
// over.
static bool record_energy(struct cap_search *search, size_t from, size_t to, struct tune_span *ret_span)
{
	int64_t end_ns = clock_now_ns() + UPDATE_MAX_NS;
	while (!cap_meter_between(search->meter, from, to, ret_span)) {
		if (search->ended_by != 0 || clock_now_ns() > end_ns || cap_meter_is_lost(search->meter))
			return false;
		if (search->no_more || search->step_ns > STEP_SHORT_NS)
			nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
		else
			(void)do_step(search);
	}
	return true;
}

/* ---- waiting for steady power ---- */

static double since_set_s(const struct cap_search *search)
{
	return (double)(clock_now_ns() - search->set_ns) / 1e9;
}

// Mean power over a stretch of steps. False: the search is over, or the counters do not update.
static bool measure_interval(struct cap_search *search, struct tune_interval_power *ret_power)
{
	int64_t begin_ns = mark(search, WAIT_BEGIN);
	uint64_t updates = cap_meter_updates(search->meter);
	do {
		if (!do_step(search))
			return false;
	} while (clock_now_ns() - begin_ns < INTERVAL_NS ||
		(cap_meter_updates(search->meter) < updates + INTERVAL_UPDATES &&
			clock_now_ns() - begin_ns < UPDATE_MAX_NS));
	struct tune_span span;
	(void)mark(search, WAIT_END);
	double until_s = since_set_s(search);
	if (!record_energy(search, WAIT_BEGIN, WAIT_END, &span))
		return false;
	*ret_power = (struct tune_interval_power){
		.limit_w = search->what == CAP_POWER ? tuner_limit(search->tuner, search->limit) : (double)NAN,
		.sum_w = span.energy_j / span.seconds,
		.max_w = span.max_j / span.seconds,
		.until_s = until_s,
	};
	return true;
}

// False: the search is over.
static bool work_until(struct cap_search *search, double since_set)
{
	while (since_set_s(search) < since_set)
		if (!do_step(search))
			return false;
	return true;
}

static void wait_until_stable(struct cap_search *search)
{
	struct tune_interval_power power;
	if (search->options.settle_s > 0) {
		(void)(do_step(search) && work_until(search, search->options.settle_s));
		return;
	}
	tune_steady_begin(&search->steady);
	// Wait at least the response delay seen so far: after a raised limit the power may look steady before it rises.
	(void)work_until(search, search->steady.delay_s);
	int64_t begin_ns = clock_now_ns();
	while (!is_over(search) && clock_now_ns() - begin_ns < WAIT_MAX_NS)
		if (measure_interval(search, &power) && tune_steady_add(&search->steady, &power, STEADY))
			return;
}

/* ---- limits ---- */

static int set_all(struct cap_search *search, double value, struct wattle_error *reterr)
{
	struct cap_outcome outcome;
	int r = 0;
	for (size_t i = 0; r == 0 && i < search->n_devices; i++) {
		struct cap_entry *entry = cap_session_entry(search->session, search->devices[i]);
		r = cap_hold_set(entry->hold, value, &outcome, reterr);
		if (r == 0)
			entry->value = value;
	}
	return r;
}

static int check_all(struct cap_search *search, struct wattle_error *reterr)
{
	for (size_t i = 0; i < search->n_devices; i++) {
		struct cap_outcome outcome = {0};
		struct cap_hold *hold = cap_session_entry(search->session, search->devices[i])->hold;
		int r = cap_hold_check(hold, &outcome);
		if (r > 0)
			return error_set(reterr, -ECANCELED, "%s; the search was cancelled", outcome.text);
		if (r < 0)
			return error_set(reterr, r, "%s: %s", search->devices[i]->name,
				outcome.text[0] != '\0' ? outcome.text : wattle_strerror(r));
	}
	return 0;
}

// Other threads may access the devices meanwhile, so each access locks the session.
static int with_session(struct cap_search *search, int (*what)(struct cap_search *, double, struct wattle_error *),
	double value, struct wattle_error *reterr)
{
	struct cap_session *session;
	int r = cap_session_enter(&session, reterr);
	if (r < 0)
		return r;
	r = what(search, value, reterr);
	cap_session_leave();
	return r == -ESTALE ? -ECANCELED : r;
}

static int check_now(struct cap_search *search, double unused, struct wattle_error *reterr)
{
	return check_all(search, reterr);
}

/* The first candidate is often the limit in force and is then not set again. Otherwise it is set before any step runs,
 * so that a driver's refusal is reported before work is wasted. */
static int change_limit(struct cap_search *search, size_t limit, struct wattle_error *reterr)
{
	int r = 0;
	if (search->limit == SIZE_MAX)
		r = with_session(search, set_all, tuner_limit(search->tuner, limit == 0 ? 1 : 0), reterr);
	return r < 0 ? r : with_session(search, set_all, tuner_limit(search->tuner, limit), reterr);
}

static int take_limit(struct cap_search *search, size_t limit, struct wattle_error *reterr)
{
	if (limit == search->limit)
		return 0;
	int r = change_limit(search, limit, reterr);
	if (r < 0)
		return r;
	search->limit = limit;
	search->set_ns = clock_now_ns();
	wait_until_stable(search);
	return 0;
}

/* ---- windows ---- */

static int count_unknown(struct cap_search *search, const struct tune_window *window, struct wattle_error *reterr)
{
	search->n_unknown = isnan(window->energy_j) ? search->n_unknown + 1 : 0;
	bool is_lost = cap_meter_is_lost(search->meter);
	if (!is_lost && search->n_unknown < UNKNOWN_MAX)
		return 0;
	return error_set(reterr, -EIO, "%s: its energy counter %s", search->devices[0]->name,
		is_lost ? "was reset or can no longer be read" : "does not change");
}

static int measure(struct cap_search *search, double seconds, struct wattle_error *reterr)
{
	struct tune_window window = {.limit = search->limit, .energy_j = (double)NAN, .energy_error_j = (double)NAN};
	struct tune_span span;
	uint64_t steps = search->n_steps;
	int64_t begin_ns = mark(search, WINDOW_BEGIN);
	while (do_step(search) && (double)(clock_now_ns() - begin_ns) / 1e9 < seconds)
		;
	if (search->ended_by != 0)
		return 0;
	window.steps = (double)(search->n_steps - steps);
	int64_t end_ns = mark(search, WINDOW_END);
	window.time_s = (double)(end_ns - begin_ns) / 1e9;
	window.at_s = (double)(begin_ns / 2 + end_ns / 2 - search->start_ns) / 1e9;
	if (record_energy(search, WINDOW_BEGIN, WINDOW_END, &span)) {
		window.energy_j = span.energy_j;
		window.energy_error_j = span.error_j;
	}
	if (search->ended_by != 0 || window.steps == 0)
		return 0;
	search->measured_s += window.time_s;
	tuner_add(search->tuner, &window);
	return count_unknown(search, &window, reterr);
}

static void report_progress(struct cap_search *search)
{
	if (search->options.progress == NULL || search->ended_by != 0)
		return;
	// Time outside windows, mainly waiting for steady power, is expected to keep its present share.
	double elapsed_s = (double)(clock_now_ns() - search->start_ns) / 1e9;
	double share = search->measured_s > 0 ? elapsed_s / search->measured_s : 1;
	const struct wattle_cap_progress progress = {
		.size = sizeof(progress),
		.done = tuner_progress(search->tuner),
		.seconds_left = tuner_seconds_left(search->tuner) * share,
		.limit = tuner_limit(search->tuner, search->limit),
		.steps = search->n_steps,
	};
	int r = search->options.progress(search->data, &progress);
	if (r == WATTLE_CAP_NO_MORE)
		search->no_more = true;
	else
		search->ended_by = getpid() != search->owner ? -EBADF : r;
}

// The energy before a counter's first update is unknown.
static void wait_for_update(const struct cap_search *search)
{
	int64_t end_ns = clock_now_ns() + UPDATE_MAX_NS;
	while (cap_meter_updates(search->meter) == 0 && clock_now_ns() < end_ns)
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
}

int cap_search_run(struct cap_search *search, struct wattle_error *reterr)
{
	size_t limit;
	double seconds;
	wait_for_update(search);
	search->start_ns = clock_now_ns();
	search->limit = SIZE_MAX;
	while (!is_over(search) && tuner_next(search->tuner, &limit, &seconds)) {
		int r = take_limit(search, limit, reterr);
		if (r == 0 && !is_over(search))
			r = measure(search, seconds, reterr);
		if (search->ended_by != 0)
			return 0;
		if (r == 0)
			r = with_session(search, check_now, 0, reterr);
		if (r < 0)
			return r;
		report_progress(search);
	}
	return 0;
}
