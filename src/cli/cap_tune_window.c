/* One window: the program at work under one limit, from the end of one step to the end of a later step, or one whole run of the
 * command; with the energy of the limited devices in that interval. */
#include "cli/cap_tune.h"

#include "analysis/metadata_keys.h"
#include "base/clock.h"
#include "base/util.h"
#include "energy/curve.h"
#include "sampler/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Readings before a window show how the counters advance; readings under another limit would show that limit's power.
static const int64_t AROUND_NS = 3 * NS_PER_S, UNSTEADY_NS = 100 * NS_PER_MS;
static const int64_t MIN_POLL_NS = 30 * NS_PER_MS, MAX_POLL_NS = 300 * NS_PER_MS;
static const double LONG_STEPS = 10; // a step counts as missing after this multiple of the longest step so far
enum { MIN_STEPS = 2, WARM_UP_STEPS = 3, RUNS_WITHOUT_WINDOW_MAX = 3 };
// NVML: thermal slowdown by software and by hardware, power brake. Throttling by the limit itself is intended and not included.
static const int64_t THERMAL_BITS = 0x20 | 0x40 | 0x80;

static enum tune_event broken(struct tune_search *search, int code)
{
	search->error.code = code;
	return TUNE_BROKEN;
}

/* ---- energy ---- */

// Whether readings extend far enough after an instant to include the next counter update.
static bool is_covered(const struct run_device *device, int64_t t_ns)
{
	double period_s = device->update_period_s > 0 ? device->update_period_s : 0.1;
	return device->t_ns[device->n - 1] >= t_ns + (int64_t)(2.5e9 * period_s);
}

static bool was_hot(const struct run_device *device, int64_t from_ns, int64_t to_ns)
{
	struct run_values column = device_column(device, DEVICE_THROTTLE_REASONS);
	for (size_t i = 0; i < device->n; i++) {
		int64_t bits = values_at(column, i);
		if (device->t_ns[i] >= from_ns && device->t_ns[i] <= to_ns && value_ok(bits) &&
			(bits & THERMAL_BITS) != 0)
			return true;
	}
	return false;
}

struct interval_energy {
	double j, error_j2;
};

static int add_device(struct tune_search *search, const struct run *run, const struct domain *domain,
	const struct tune_step_interval *interval, bool is_last, struct interval_energy *sum)
{
	const struct run_device *device = tune_device_of(run, domain);
	struct energy_between energy;
	if (device == NULL || (!is_last && !is_covered(device, interval->to_ns)))
		return error_set(&search->error, is_last ? -ENODATA : -EAGAIN, "%s was not measured during the window",
			domain->name);
	int r = energy_between(run, device, run_metadata_i64(run, META_KEY_INTERVAL), interval->from_ns,
		interval->to_ns, &energy);
	if (r < 0)
		return error_set(&search->error, r, "out of memory");
	if (isnan(energy.j))
		return error_set(&search->error, -ENODATA, "%s: can't read its energy", domain->name);
	search->saw_thermal |= was_hot(device, interval->from_ns, interval->to_ns);
	search->scale_error = fmax(search->scale_error, energy.scale_error);
	search->from_power |= energy.from_power;
	sum->j += energy.j;
	sum->error_j2 += energy.error_j * energy.error_j;
	return 0;
}

// -EAGAIN: the rows are not stored yet; -ENODATA: they do not cover the interval. is_last: no further rows will follow.
static int measure_energy(struct tune_search *search, struct run *run, const struct tune_step_interval *interval,
	bool is_last, struct tune_window *window)
{
	struct interval_energy sum = {0};
	const struct tune_group *group = search->group;
	for (size_t i = 0; i < group->n; i++) {
		const struct tune_devices *devices = group->devices;
		const struct domain *domain = devices->sensors.devices[devices->at[group->first + i].sensor];
		int r = add_device(search, run, domain, interval, is_last, &sum);
		if (r < 0)
			return r;
	}
	window->energy_j = sum.j;
	window->energy_error_j = sqrt(sum.error_j2);
	return 0;
}

static void fill(const struct tune_search *search, const struct tune_step_interval *interval,
	struct tune_window *window)
{
	window->steps = interval->steps;
	window->time_s = (double)(interval->to_ns - interval->from_ns) * 1e-9;
	window->at_s = ((double)(interval->from_ns - search->start_ns) + (double)(interval->to_ns - search->start_ns)) *
		0.5e-9;
}

static int measure_interval(struct tune_search *search, const struct tune_step_interval *interval, bool is_last,
	struct tune_window *window)
{
	struct run run;
	int64_t from_ns = interval->from_ns - AROUND_NS;
	from_ns = from_ns > search->steady_ns ? from_ns : search->steady_ns;
	// Counters restart with each recording.
	from_ns = from_ns > search->recorder->started_ns ? from_ns : search->recorder->started_ns;
	int r = run_load_devices(search->recorder->path, from_ns, INT64_MAX, &run, &search->error);
	if (r < 0)
		return r == -EBUSY ? -EAGAIN : r;
	if (run.n_segments > 0 && run.n > 0) { // the program extends beyond the readings on both sides
		run.segments[0] = (struct run_segment){.start_ns = run.t_ns[0], .end_ns = run.t_ns[run.n - 1]};
		run.n_segments = 1;
	}
	r = measure_energy(search, &run, interval, is_last, window);
	run_finish(&run);
	if (r == 0)
		fill(search, interval, window);
	return r;
}

/* ---- steps ---- */

static enum tune_event print_no_step(struct tune_search *search, int64_t since_ns)
{
	char names[300];
	const struct tune_steps *steps = search->steps;
	tune_steps_names(steps, names, sizeof(names));
	const char *kind = steps->is_metric ? "metric" : "step";
	error_set(&search->error, -ENODATA, "no %s named %s was recorded within %.0f s; %s%s%s", kind, steps->tail.name,
		(double)(clock_now_ns() - since_ns) * 1e-9,
		names[0] != '\0' ? "names recorded so far: " : "the program has recorded none so far", names,
		names[0] != '\0' || search->options->nvtx || search->options->itt
			? ""
			: " (--nvtx and --itt capture unmodified programs)");
	return broken(search, -ENODATA);
}

static bool has_waited_enough(const struct tune_search *search, int64_t since_ns)
{
	double patience_s = (double)search->options->timeout_ns * 1e-9;
	patience_s = fmax(patience_s, LONG_STEPS * search->longest_step_s);
	return (double)(clock_now_ns() - since_ns) * 1e-9 > patience_s;
}

// Polls rarely until the window can end, then often, because its rows are due.
static int64_t next_poll_ns(int64_t end_ns)
{
	int64_t now_ns = clock_now_ns(), wait_ns = now_ns < end_ns ? end_ns - now_ns : (now_ns - end_ns) / 5;
	return now_ns + (wait_ns < MIN_POLL_NS ? MIN_POLL_NS : wait_ns > MAX_POLL_NS ? MAX_POLL_NS : wait_ns);
}

// 0, -EAGAIN: no file yet, or an error.
static int poll_once(struct tune_search *search, int64_t since_ns)
{
	struct wattle_error error = {0};
	int r = tune_steps_poll(search->steps, &error);
	if (r == -ENOENT || r == -EBUSY)
		return -EAGAIN;
	if (r < 0)
		search->error = error;
	step_tail_drop(&search->steps->tail, since_ns);
	return r;
}

// is_last: no further steps will follow.
static bool can_end(const struct tune_search *search, const struct tune_step_interval *interval, int64_t length_ns,
	bool is_last)
{
	int64_t stored_ns = search->steps->tail.stored_ns;
	bool is_stored = is_last || (value_ok(stored_ns) && stored_ns >= interval->from_ns + length_ns);
	bool is_overdue = interval->ends > 0 && has_waited_enough(search, interval->to_ns);
	return (interval->ends >= MIN_STEPS && is_stored) || is_overdue;
}

// 0 or an error code as of measure_interval; -EINVAL: the metric is no count of work.
static int measure_window(struct tune_search *search, const struct tune_step_interval *interval, bool is_last,
	struct tune_window *window)
{
	if (!(interval->steps > 0))
		return error_set(&search->error, -EINVAL,
			"metric %s: counted %g units of work in %.1f s, expected more than 0; --metric adds "
			"values up, --metric-total expects a running total",
			search->steps->tail.name, interval->steps,
			(double)(interval->to_ns - interval->from_ns) * 1e-9);
	int r = measure_interval(search, interval, is_last, window);
	if (r == 0)
		search->longest_step_s = fmax(search->longest_step_s, window->time_s / (double)interval->ends);
	return r;
}

// Steps of a program that was running before may precede the recorder's first readings.
static bool is_recording(const struct tune_search *search)
{
	struct run run;
	if (run_load_devices(search->recorder->path, search->recorder->started_ns, INT64_MAX, &run, NULL) < 0)
		return false;
	bool any = run.n > 0;
	run_finish(&run);
	return any;
}

// Waits for the end of the warm-up steps, and for the recorder.
static enum tune_event warm_up(struct tune_search *search)
{
	int64_t since_ns = search->recorder->started_ns;
	for (;;) {
		struct tune_step_interval interval;
		enum tune_event event = tune_wait(search, clock_now_ns() + MIN_POLL_NS);
		if (event != TUNE_GOES_ON)
			return event;
		int r = poll_once(search, since_ns);
		if (r < 0 && r != -EAGAIN)
			return broken(search, r);
		bool any = r == 0 && tune_steps_interval(search->steps, since_ns, INT64_MAX / 4, 1, &interval);
		bool is_slow = any && (double)(interval.to_ns - interval.from_ns) * 1e-9 > search->options->seconds;
		if (any && (interval.ends + 1 >= WARM_UP_STEPS || is_slow) && is_recording(search))
			return TUNE_GOES_ON;
		if (!any && has_waited_enough(search, since_ns))
			return print_no_step(search, since_ns);
		tune_show_progress(search, any ? "warming up" : "waiting for the first step");
	}
}

/* If the command has ended, the interval up to its end is used, if there is one. On a busy machine the recorder's first
 * reading under a new limit may be later than the window's first step; a new window then begins now. */
static enum tune_event measure_steps(struct tune_search *search, double seconds, struct tune_window *window)
{
	const int64_t start_ns = clock_now_ns(), length_ns = (int64_t)(seconds * 1e9);
	int64_t since_ns = start_ns;
	for (;;) {
		struct tune_step_interval interval;
		enum tune_event event = tune_wait(search, next_poll_ns(since_ns + length_ns));
		bool is_last = event == TUNE_ENDED;
		if (event != TUNE_GOES_ON && !is_last)
			return event;
		int r = poll_once(search, since_ns);
		if (r < 0 && r != -EAGAIN)
			return broken(search, r);
		bool any = tune_steps_interval(search->steps, since_ns, length_ns, MIN_STEPS, &interval);
		bool ends = any && can_end(search, &interval, length_ns, is_last);
		r = ends ? measure_window(search, &interval, is_last, window) : -EAGAIN;
		if (r == 0)
			return TUNE_GOES_ON;
		if (r != -EAGAIN && r != -ENODATA)
			return broken(search, r);
		if (is_last)
			return event;
		if (r == -ENODATA && since_ns > start_ns && has_waited_enough(search, start_ns))
			return broken(search, r);
		if (r == -ENODATA)
			since_ns = clock_now_ns();
		else if (has_waited_enough(search, any ? interval.to_ns : since_ns))
			return ends ? broken(search, -ENODATA) : print_no_step(search, any ? interval.to_ns : since_ns);
		tune_show_progress(search, NULL);
	}
}

/* ---- whole runs ---- */

static enum tune_event wait_for_end(struct tune_search *search)
{
	enum tune_event event = TUNE_GOES_ON;
	while (event == TUNE_GOES_ON) {
		event = tune_wait(search, clock_now_ns() + MAX_POLL_NS);
		tune_show_progress(search, NULL);
	}
	return event;
}

// Returns 1 if the run must be repeated.
static int measure_run(struct tune_search *search, struct tune_window *window)
{
	struct run run;
	const struct tune_recorder *recorder = search->recorder;
	int r = run_load_devices(recorder->path, recorder->started_ns, INT64_MAX, &run, &search->error);
	if (r < 0)
		return r;
	if (run.n_segments == 0) {
		run_finish(&run);
		return error_set(&search->error, -ENODATA, "%s contains no run", recorder->path);
	}
	run.segments[0] = run.segments[run.n_segments - 1];
	run.n_segments = 1;
	const struct tune_step_interval interval = {run.segments[0].start_ns, run.segments[0].end_ns, 1, 1};
	r = tune_began_early(search, &run, &interval) ? 1 : measure_energy(search, &run, &interval, true, window);
	run_finish(&run);
	if (r == 0)
		fill(search, &interval, window);
	return r;
}

/* ---- a window ---- */

static enum tune_event check(struct tune_search *search)
{
	int r = tune_group_check(search->group, &search->error);
	return r == 0 ? TUNE_GOES_ON : r > 0 ? TUNE_CHANGED : broken(search, r);
}

static enum tune_event change(struct tune_search *search, size_t limit)
{
	bool is_new = search->group->set != tuner_limit(search->tuner, limit);
	int r = tune_group_set(search->group, tuner_limit(search->tuner, limit), &search->error);
	search->set_ns = is_new ? clock_now_ns() : search->set_ns;
	return r == 0 ? TUNE_GOES_ON : r == -EBUSY ? TUNE_CHANGED : broken(search, r);
}

static enum tune_event set(struct tune_search *search, size_t limit)
{
	bool is_new = search->group->set != tuner_limit(search->tuner, limit);
	enum tune_event event = change(search, limit);
	bool becomes_stable = is_new || (search->steps->whole_runs && !isnan(search->options->settle_s));
	if (event != TUNE_GOES_ON || !becomes_stable)
		return event;
	int64_t start_ns = clock_now_ns();
	event = tune_wait_until_stable(search);
	search->steady_ns = clock_now_ns();
	int64_t quarter_ns = (search->steady_ns - start_ns) / 4; // the last quarter shows how counters advance
	search->steady_ns -= quarter_ns < UNSTEADY_NS ? quarter_ns : UNSTEADY_NS;
	return event;
}

// Warms up under the limit to be measured.
static enum tune_event start(struct tune_search *search, size_t limit)
{
	if (search->recorder->pid != 0)
		return TUNE_GOES_ON;
	enum tune_event event = change(search, limit);
	if (event != TUNE_GOES_ON)
		return event;
	search->group->set = search->steps->whole_runs ? search->group->set : (double)NAN; // NaN: settle again
	tune_steps_begin(search->steps);
	int r = tune_recorder_start(search->recorder, &search->error);
	if (r < 0)
		return broken(search, r);
	return search->steps->whole_runs ? TUNE_GOES_ON : warm_up(search);
}

// Restarts the command until a run is under the limit from its start.
static enum tune_event measure_whole_run(struct tune_search *search, size_t limit, struct tune_window *window)
{
	int r = 1;
	while (r > 0) {
		enum tune_event event = start(search, limit);
		tune_show_progress(search, NULL);
		if (event == TUNE_GOES_ON)
			event = wait_for_end(search);
		if (event != TUNE_ENDED)
			return event;
		r = measure_run(search, window);
	}
	return r < 0 ? broken(search, r) : TUNE_GOES_ON;
}

static enum tune_event attempt(struct tune_search *search, size_t limit, double seconds, struct tune_window *window)
{
	bool whole_runs = search->steps->whole_runs;
	tune_show_progress(search, "settling");
	enum tune_event event = whole_runs ? TUNE_GOES_ON : start(search, limit);
	if (event == TUNE_GOES_ON)
		event = set(search, limit);
	if (event != TUNE_GOES_ON)
		return event;
	tune_show_progress(search, NULL);
	event = whole_runs ? measure_whole_run(search, limit, window) : measure_steps(search, seconds, window);
	return event == TUNE_GOES_ON ? check(search) : event;
}

static enum tune_event print_too_short(struct tune_search *search)
{
	char names[300], why[sizeof(search->error.text)];
	tune_steps_names(search->steps, names, sizeof(names));
	text_copy(why, sizeof(why), search->error.text); // reason why a device's energy is missing, or none
	error_set(&search->error, -ETIME,
		"the command ended %d times before %d steps named %s could be measured; %s%somit --step "
		"to measure whole runs%s%s",
		RUNS_WITHOUT_WINDOW_MAX, MIN_STEPS, search->steps->tail.name, why, why[0] != '\0' ? "; " : "",
		names[0] != '\0' ? "; names recorded: " : "", names);
	return broken(search, -ETIME);
}

enum tune_event tune_measure(struct tune_search *search, size_t limit, double seconds, struct tune_window *ret_window)
{
	struct tune_window window = {.limit = limit};
	for (;;) {
		enum tune_event event = check(search);
		if (event == TUNE_GOES_ON)
			event = attempt(search, limit, seconds, &window);
		if (event == TUNE_GOES_ON) {
			search->runs_without_window = 0;
			*ret_window = window;
			return event;
		}
		if (event != TUNE_ENDED)
			return event;
		if (search->options->command == NULL) {
			error_set(&search->error, -ESRCH, "process %lld has ended", (long long)search->options->pid);
			return broken(search, -ESRCH);
		}
		if (++search->runs_without_window < RUNS_WITHOUT_WINDOW_MAX)
			continue;
		return print_too_short(search);
	}
}
