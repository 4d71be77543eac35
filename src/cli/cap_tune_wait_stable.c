/* Waits after a change of the limit until the limit is in effect and power is steady. Firmware, fans and clocks react with a
 * delay. This module reads the meters itself, because the recorder's readings arrive in batches. */
#include "cli/cap_tune.h"

#include "analysis/metadata_keys.h"
#include "base/clock.h"
#include "base/util.h"
#include "energy/curve.h"

/* Power is measured over intervals until two in a row agree. Each interval is longer than the previous one, so that power
 * variations within the program's steps average out. */
static const int64_t FIRST_INTERVAL_NS = 200 * NS_PER_MS, MAX_NS = 10 * NS_PER_S;
static const double LONGER = 1.25, AGREES = 0.02;
// An interval ends when each counter has been updated once more, or after this time without an update.
static const int64_t NO_UPDATE_NS = 200 * NS_PER_MS;
enum { FROM, TO }; // marks of the meter

static double limit_w(const struct tune_group *group)
{
	return group->devices->at[group->first].cap->what == CAP_POWER ? group->set : (double)NAN;
}

static double since_set_s(const struct tune_search *search, int64_t t_ns)
{
	return (double)(t_ns - search->set_ns) * 1e-9;
}

// Waits and handles events until a time, and reads the meters meanwhile.
static enum tune_event watch(struct tune_search *search, int64_t until_ns)
{
	enum tune_event event = TUNE_GOES_ON;
	while (event == TUNE_GOES_ON && clock_now_ns() < until_ns) {
		tune_meter_poll(&search->meter);
		int64_t next_ns = clock_now_ns() + TUNE_POLL_NS;
		event = tune_wait(search, next_ns < until_ns ? next_ns : until_ns);
	}
	return event;
}

// Measures power over an interval that begins now; NaN: the devices report no power.
static enum tune_event measure_power(struct tune_search *search, int64_t interval_ns,
	struct tune_interval_power *ret_power)
{
	const double none = (double)NAN;
	struct tune_span span = {.energy_j = none, .max_j = none, .seconds = 1};
	tune_meter_mark(&search->meter, FROM, clock_now_ns());
	enum tune_event event = watch(search, clock_now_ns() + interval_ns);
	int64_t end_ns = clock_now_ns();
	tune_meter_mark(&search->meter, TO, end_ns);
	bool is_known = false;
	while (event == TUNE_GOES_ON && !is_known && clock_now_ns() < end_ns + NO_UPDATE_NS) {
		event = watch(search, clock_now_ns() + TUNE_POLL_NS);
		is_known = tune_meter_between(&search->meter, FROM, TO, false, &span);
	}
	if (!is_known)
		(void)tune_meter_between(&search->meter, FROM, TO, true, &span);
	*ret_power = (struct tune_interval_power){.limit_w = limit_w(search->group),
		.sum_w = span.energy_j / span.seconds,
		.max_w = span.max_j / span.seconds,
		.until_s = since_set_s(search, end_ns)};
	return event;
}

// Between whole runs, power need not become steady: only the time until the limit is in effect matters.
static int64_t longest_wait_ns(const struct tune_search *search)
{
	bool is_short = search->steps->whole_runs && search->steady.above_s == 0;
	return is_short ? (int64_t)(TUNE_SLOWEST_S * 1e9) : MAX_NS;
}

static enum tune_event until_steady(struct tune_search *search)
{
	tune_steady_begin(&search->steady);
	// Waits for the response time learned so far: after an increase of the limit, power does not show that the increase is
	// still pending.
	enum tune_event event = watch(search, search->set_ns + (int64_t)(search->steady.delay_s * 1e9));
	int64_t interval_ns = FIRST_INTERVAL_NS, start_ns = clock_now_ns();
	if (event == TUNE_GOES_ON)
		event = watch(search, clock_now_ns() + NO_UPDATE_NS); // a counter's value is unknown before its first update
	while (event == TUNE_GOES_ON && clock_now_ns() - start_ns + interval_ns <= longest_wait_ns(search)) {
		struct tune_interval_power power;
		event = measure_power(search, interval_ns, &power);
		if (event != TUNE_GOES_ON)
			return event;
		if (tune_steady_add(&search->steady, &power, AGREES))
			return TUNE_GOES_ON;
		if (isnan(power.sum_w) && interval_ns > FIRST_INTERVAL_NS)
			break; // the devices report no power, so there is nothing to wait for
		interval_ns = (int64_t)((double)interval_ns * LONGER);
	}
	search->n_unstable += !search->steps->whole_runs;
	return event;
}

enum tune_event tune_wait_until_stable(struct tune_search *search)
{
	int64_t start_ns = clock_now_ns();
	double fixed_s = search->options->settle_s;
	enum tune_event event = isnan(fixed_s) ? until_steady(search)
					       : tune_wait(search, start_ns + (int64_t)(fixed_s * 1e9));
	search->waited_s += (double)(clock_now_ns() - start_ns) * 1e-9;
	search->n_stable++;
	return event;
}

/* ---- whole runs ---- */

static const int64_t SLEEP_NS = 200 * NS_PER_MS; // mean power of a run is computed for pieces of this length

// The end of the last piece, within the first seconds of a run, in which the device drew more than its limit; 0: none.
static int64_t above_until_ns(const struct tune_search *search, const struct run *run, const struct run_device *device,
	const struct tune_step_interval *interval)
{
	const int64_t slowest_ns = (int64_t)(TUNE_SLOWEST_S * 1e9);
	int64_t end_ns = interval->from_ns + slowest_ns < interval->to_ns ? interval->from_ns + slowest_ns
									  : interval->to_ns;
	int64_t until_ns = 0;
	for (int64_t t_ns = interval->from_ns; t_ns + SLEEP_NS <= end_ns; t_ns += SLEEP_NS) {
		struct energy_between energy;
		if (energy_between(run, device, run_metadata_i64(run, META_KEY_INTERVAL), t_ns, t_ns + SLEEP_NS,
			    &energy) < 0)
			continue;
		double w = (energy.j - energy.error_j) / ((double)SLEEP_NS * 1e-9);
		if (tune_steady_is_above(&search->steady, limit_w(search->group), w))
			until_ns = t_ns + SLEEP_NS;
	}
	return until_ns;
}

bool tune_began_early(struct tune_search *search, const struct run *run, const struct tune_step_interval *interval)
{
	const struct tune_group *group = search->group;
	int64_t until_ns = 0;
	for (size_t i = 0; i < group->n && !search->exceeds; i++) {
		const struct tune_devices *devices = group->devices;
		const struct domain *domain = devices->sensors.devices[devices->at[group->first + i].sensor];
		const struct run_device *device = tune_device_of(run, domain);
		int64_t above_ns = device != NULL ? above_until_ns(search, run, device, interval) : 0;
		until_ns = above_ns > until_ns ? above_ns : until_ns;
	}
	struct tune_steady *steady = &search->steady;
	bool is_above = until_ns > 0, is_early = since_set_s(search, interval->from_ns) < TUNE_SLOWEST_S;
	if (is_above && is_early && isnan(search->options->settle_s)) {
		steady->above_s = since_set_s(search, until_ns);
		return true;
	}
	search->exceeds |= is_above; // the device starts like that, whenever the limit was set
	if (!is_above)
		tune_steady_record(steady, steady->above_s);
	return false;
}
