/* After a limit was set: until power is steady. Firmware takes its time, and so do fans and clocks. The meters are read by
 * ourselves meanwhile; what the recorder reads comes in batches. */
#include "cli/cap_tune.h"

#include "base/clock.h"
#include "base/util.h"

#include <unistd.h>

/* Stretches of time of which two in a row agree; each is longer than the one before, so that the ups and downs of a program's
 * own steps even out. */
static const int64_t FIRST_STRETCH_NS = 200 * NS_PER_MS, MOST_NS = 10 * NS_PER_S;
static const double LONGER = 1.25, AGREES = 0.02, AGREES_W = 0.5;
/* A stretch goes from one update of a counter to another: between them the counter tells of an earlier moment. Looked for this
 * often, and given up after so long: then the reading counts as it is. */
static const int64_t LOOK_NS = 2 * NS_PER_MS, NO_UPDATE_NS = 200 * NS_PER_MS;

struct look {                                                 // of each device of the group
	double energy_j[TUNE_DEVICES], power_w[TUNE_DEVICES]; // NaN: none
	int64_t t_ns[TUNE_DEVICES];
};

static size_t sensor_of(const struct tune_search *search, size_t i)
{
	return search->group->devices->at[search->group->first + i].sensor;
}

static void read_all(struct tune_search *search, struct look *look)
{
	struct tune_devices *devices = search->group->devices;
	const struct sensor_context context = {
		.t_ns = env_now_ns(&devices->env),
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.self_pid = getpid(),
	};
	sensor_set_read(&devices->sensors, &context, search->rows);
	for (size_t i = 0; i < search->group->n; i++) {
		size_t sensor = sensor_of(search, i);
		const int64_t *row = search->rows[sensor];
		struct counter *counter = &search->counters[sensor];
		look->t_ns[i] = context.t_ns;
		look->power_w[i] = value_to_double(row[DEVICE_POWER], 1e-3);
		look->energy_j[i] = (double)NAN;
		if (!devices->sensors.devices[sensor]->has_energy)
			continue;
		counter_feed(counter, context.t_ns, row[DEVICE_ENERGY], false);
		if (counter->primed)
			look->energy_j[i] = (double)counter->total * 1e-6;
	}
}

// Each device at an update of its counter.
static enum tune_event look_at_updates(struct tune_search *search, struct look *ret_look)
{
	struct look first, now;
	bool has_moved[TUNE_DEVICES] = {false}, any_waits = true;
	read_all(search, &first);
	int64_t start_ns = clock_now_ns();
	*ret_look = first;
	while (any_waits && clock_now_ns() - start_ns < NO_UPDATE_NS) {
		enum tune_event event = tune_wait(search, clock_now_ns() + LOOK_NS);
		if (event != TUNE_GOES_ON)
			return event;
		any_waits = false;
		read_all(search, &now);
		for (size_t i = 0; i < search->group->n; i++) {
			bool moves = !has_moved[i] && now.energy_j[i] > first.energy_j[i];
			has_moved[i] |= moves;
			any_waits |= !has_moved[i] && !isnan(now.energy_j[i]);
			if (!moves)
				continue;
			ret_look->energy_j[i] = now.energy_j[i];
			ret_look->t_ns[i] = now.t_ns[i];
		}
	}
	return TUNE_GOES_ON;
}

static double mean_w(const struct tune_search *search, const struct look *from, const struct look *to)
{
	double sum_w = 0;
	for (size_t i = 0; i < search->group->n; i++) {
		double seconds = (double)(to->t_ns[i] - from->t_ns[i]) * 1e-9;
		double w = (to->energy_j[i] - from->energy_j[i]) / seconds;
		sum_w += isnan(w) ? (from->power_w[i] + to->power_w[i]) / 2 : w;
	}
	return sum_w;
}

static enum tune_event until_steady(struct tune_search *search)
{
	int64_t stretch_ns = FIRST_STRETCH_NS, start_ns = clock_now_ns();
	double before_w = (double)NAN;
	struct look from, to;
	enum tune_event event = look_at_updates(search, &from);
	while (event == TUNE_GOES_ON && clock_now_ns() - start_ns + stretch_ns <= MOST_NS) {
		event = tune_wait(search, clock_now_ns() + stretch_ns);
		if (event == TUNE_GOES_ON)
			event = look_at_updates(search, &to);
		if (event != TUNE_GOES_ON)
			return event;
		double w = mean_w(search, &from, &to);
		if (fabs(w - before_w) <= AGREES * fabs(w) + AGREES_W)
			return TUNE_GOES_ON;
		if (isnan(w) && stretch_ns > FIRST_STRETCH_NS)
			break; // there is nothing to wait for: the devices tell no power
		before_w = w;
		from = to;
		stretch_ns = (int64_t)((double)stretch_ns * LONGER);
	}
	search->n_unsettled++;
	return event;
}

enum tune_event tune_settle(struct tune_search *search)
{
	int64_t start_ns = clock_now_ns();
	double fixed_s = search->options->settle_s;
	if (search->steps->whole_runs && isnan(fixed_s))
		return TUNE_GOES_ON; // nothing runs yet, and a run begins as it always does
	enum tune_event event = isnan(fixed_s) ? until_steady(search)
					       : tune_wait(search, start_ns + (int64_t)(fixed_s * 1e9));
	search->settled_s += (double)(clock_now_ns() - start_ns) * 1e-9;
	search->n_settled++;
	return event;
}
