// All windows, in the order that the tuner wants them, and what may happen meanwhile.
#include "cli/cap_tune.h"

#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

/* ---- waiting ---- */

static bool take_signals(struct tune_search *search)
{
	struct signalfd_siginfo info;
	while (read(search->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD) {
			search->signals->stopped_by = (int)info.ssi_signo;
			search->is_from_terminal = info.ssi_code == SI_KERNEL;
		}
	return search->signals->stopped_by != 0;
}

static size_t watch(const struct tune_search *search, struct pollfd *fds)
{
	const struct tune_group *group = search->group;
	size_t n = 0;
	fds[n++] = (struct pollfd){.fd = search->signal_fd, .events = POLLIN};
	for (size_t i = 0; i < group->n; i++) {
		const struct cap_hold *hold = group->devices->at[group->first + i].hold;
		fds[n++] = (struct pollfd){.fd = hold != NULL ? cap_hold_fd(hold) : -1, .events = POLLIN};
	}
	return n;
}

static bool any_ready(const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i].revents != 0)
			return true;
	return false;
}

enum tune_event tune_wait(struct tune_search *search, int64_t until_ns)
{
	bool has_child = search->recorder->pid != 0, has_checked = false;
	for (;;) {
		struct pollfd fds[1 + TUNE_DEVICES];
		if (take_signals(search))
			return TUNE_STOPPED;
		if (has_child && tune_recorder_has_ended(search->recorder))
			return search->recorder->status == 0 ? TUNE_ENDED : TUNE_FAILED;
		int64_t left_ns = until_ns - clock_now_ns();
		if (left_ns <= 0)
			return TUNE_GOES_ON;
		const struct timespec left = {left_ns / NS_PER_S, left_ns % NS_PER_S};
		size_t n = watch(search, fds);
		int ready = ppoll(fds, has_checked ? 1 : n, &left, NULL);
		if (ready <= 0 || !any_ready(fds + 1, has_checked ? 0 : n - 1))
			continue;
		int r = tune_group_check(search->group, &search->error); // a guard has died: another one starts
		if (r != 0)
			return r > 0 ? TUNE_CHANGED : TUNE_BROKEN;
		has_checked = true; // it may not be mended: once a wait is enough
	}
}

/* ---- the search ---- */

static double taken(void *group, double value)
{
	return tune_group_taken(group, value);
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
	return r < 0 ? error_set(&search->error, r, "the search can't begin: %s", strerror(-r)) : 0;
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
			"The device was throttled by heat or by its power supply in a window: such windows tell "
			"less of the limit than of the cooling.");
	if (search->n_unsettled > 0)
		cap_tune_note(report,
			"After %zu of %zu changes of the limit power was not steady within 10 s; --settle S "
			"waits as long as you say.",
			search->n_unsettled, search->n_settled);
	if (search->from_power)
		cap_tune_note(report, "%s: power readings were integrated, which tells less of short windows; %s",
			has_counters(search->group) ? "Windows were too short for the device's energy counter"
						    : "The device has no energy counter",
			search->steps->whole_runs ? "a command that takes longer is measured better."
						  : "--seconds 60 is surer.");
}

static void conclude(struct tune_search *search, struct arena *arena)
{
	struct cap_tune_report *report = search->report;
	int r = search->tuner != NULL ? tuner_conclude(search->tuner, arena, &report->result) : -ENODATA;
	report->has_result = r == 0;
	report->chosen = r == 0 ? tune_group_taken(search->group, report->result.chosen) : (double)NAN;
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
		tune_tell_window(search, &window);
	}
	tune_clear_progress(search);
	conclude(search, arena);
	return event;
}
