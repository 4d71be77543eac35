// Measures all windows in the order that the tuner requests, and handles events meanwhile.
#include "cli/cap_tune.h"

#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static double taken(void *group, double value)
{
	return tune_group_rounded(group, value);
}

static void add_part(struct tune_search *search, const struct domain *domain)
{
	const struct sensor_set *sensors = &search->group->devices->sensors;
	for (size_t s = 0; s < sensors->n_slots; s++)
		for (size_t i = 0; i < sensors->slots[s].n_domains; i++)
			if (&sensors->slots[s].domains[i] == domain)
				tune_meter_add(&search->meter, &sensors->slots[s], i);
}

int tune_search_open(struct tune_search *search)
{
	const struct cap_tune_options *options = search->options;
	const struct tune_group *group = search->group;
	const struct sensor_set *sensors = &group->devices->sensors;
	const struct tune_options tune = {
		.goal = options->goal,
		.slowdown_percent = options->slowdown_percent,
		.seconds = options->seconds,
		.seed = search->report->seed,
		.whole_runs = search->steps->whole_runs,
		.adds_limits = options->n_limits == VALUE_MISSING,
		.taken = taken,
		.data = search->group,
	};
	if (tune_meter_open(&search->meter, &group->devices->env, sensors, group->n) < 0)
		return error_set(&search->error, -ENOMEM, "out of memory");
	for (size_t i = 0; i < group->n; i++)
		add_part(search, sensors->devices[group->devices->at[group->first + i].sensor]);
	int r = tuner_new(&tune, group->limits, group->n_limits, &search->tuner);
	return r < 0 ? error_set(&search->error, r, "can't start the search: %s", strerror(-r)) : 0;
}

void tune_search_close(struct tune_search *search)
{
	tuner_free(search->tuner);
	tune_meter_close(&search->meter);
	search->tuner = NULL;
}

static bool has_counters(const struct tune_group *group)
{
	const struct tune_devices *devices = group->devices;
	for (size_t i = 0; i < group->n; i++)
		if (!devices->sensors.devices[devices->at[group->first + i].sensor]->has_energy)
			return false;
	return true;
}

static void note_all(const struct tune_search *search)
{
	struct cap_tune_report *report = search->report;
	if (search->saw_thermal)
		cap_tune_note(report,
			"The device was throttled by heat or by its power supply in some windows; their "
			"results depend on cooling rather than on the limit.");
	if (search->n_unstable > 0)
		cap_tune_note(report,
			"After %zu of %zu changes of the limit, power was not steady within 10 s; set a "
			"longer wait with --settle S.",
			search->n_unstable, search->n_stable);
	if (search->from_power)
		cap_tune_note(report,
			"%s: power readings were integrated, which is less accurate for short windows; %s",
			has_counters(search->group) ? "Windows were too short for the device's energy counter"
						    : "The device has no energy counter",
			search->steps->whole_runs ? "use a command that runs longer."
						  : "use --seconds 60 for a more reliable result.");
}

static void conclude(struct tune_search *search, struct arena *arena)
{
	struct cap_tune_report *report = search->report;
	int r = search->tuner != NULL ? tuner_conclude(search->tuner, arena, &report->result) : -ENODATA;
	report->has_result = r == 0;
	report->chosen = r == 0 ? tune_group_rounded(search->group, report->result.chosen) : (double)NAN;
	report->n_windows = search->n_windows;
	report->measured_s = search->measured_s;
	report->elapsed_s = (double)(clock_now_ns() - search->start_ns) * 1e-9;
	report->scale_error = search->scale_error;
	note_all(search);
}

enum tune_event tune_search_run(struct tune_search *search, struct arena *arena)
{
	size_t limit;
	double seconds;
	enum tune_event event = TUNE_GOES_ON;
	search->start_ns = clock_now_ns();
	while (event == TUNE_GOES_ON && tuner_next(search->tuner, &limit, &seconds)) {
		struct tune_window window;
		event = tune_measure(search, limit, seconds, &window);
		if (event != TUNE_GOES_ON)
			break;
		tuner_add(search->tuner, &window);
		search->n_windows++;
		search->measured_s += window.time_s;
		tune_print_window(search, &window);
	}
	tune_clear_progress(search);
	conclude(search, arena);
	return event;
}
