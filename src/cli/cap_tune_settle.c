/* After a limit was set: until it acts and power is steady. Firmware takes its time, and so do fans and clocks. The meters are read
 * by ourselves meanwhile; what the recorder reads comes in batches. */
#include "cli/cap_tune.h"

#include "analysis/facts.h"
#include "base/clock.h"
#include "base/util.h"
#include "energy/between.h"

#include <unistd.h>

/* Stretches of time of which two in a row agree; each is longer than the one before, so that the ups and downs of a program's
 * own steps even out. */
static const int64_t FIRST_STRETCH_NS = 200 * NS_PER_MS, MOST_NS = 10 * NS_PER_S;
static const double LONGER = 1.25, AGREES = 0.02;
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

static double limit_w(const struct tune_group *group)
{
	return group->devices->at[group->first].cap->what == CAP_POWER ? group->set : (double)NAN;
}

static double since_set_s(const struct tune_search *search, int64_t t_ns)
{
	return (double)(t_ns - search->set_ns) * 1e-9;
}

static struct tune_stretch_power mean_power(const struct tune_search *search, const struct look *from,
	const struct look *to)
{
	struct tune_stretch_power power = {.limit_w = limit_w(search->group),
		.until_s = since_set_s(search, clock_now_ns())};
	for (size_t i = 0; i < search->group->n; i++) {
		double seconds = (double)(to->t_ns[i] - from->t_ns[i]) * 1e-9;
		double w = (to->energy_j[i] - from->energy_j[i]) / seconds;
		w = isnan(w) ? (from->power_w[i] + to->power_w[i]) / 2 : w;
		power.sum_w += w;
		power.most_w = fmax(power.most_w, w);
	}
	return power;
}

// Between whole runs nothing of the command's makes power steady: once the limit seems to act, the rest does not matter much.
static int64_t longest_wait_ns(const struct tune_search *search)
{
	bool is_short = search->steps->whole_runs && search->steady.above_s == 0;
	return is_short ? (int64_t)(TUNE_SLOWEST_S * 1e9) : MOST_NS;
}

static enum tune_event until_steady(struct tune_search *search)
{
	struct look from, to;
	tune_steady_begin(&search->steady);
	// Not sooner than limits were seen to act before: one that is raised does not show that it is to come.
	enum tune_event event = tune_wait(search, search->set_ns + (int64_t)(search->steady.delay_s * 1e9));
	int64_t stretch_ns = FIRST_STRETCH_NS, start_ns = clock_now_ns();
	if (event == TUNE_GOES_ON)
		event = look_at_updates(search, &from);
	while (event == TUNE_GOES_ON && clock_now_ns() - start_ns + stretch_ns <= longest_wait_ns(search)) {
		event = tune_wait(search, clock_now_ns() + stretch_ns);
		if (event == TUNE_GOES_ON)
			event = look_at_updates(search, &to);
		if (event != TUNE_GOES_ON)
			return event;
		struct tune_stretch_power power = mean_power(search, &from, &to);
		if (tune_steady_add(&search->steady, &power, AGREES))
			return TUNE_GOES_ON;
		if (isnan(power.sum_w) && stretch_ns > FIRST_STRETCH_NS)
			break; // there is nothing to wait for: the devices tell no power
		from = to;
		stretch_ns = (int64_t)((double)stretch_ns * LONGER);
	}
	search->n_unsettled += !search->steps->whole_runs;
	return event;
}

enum tune_event tune_settle(struct tune_search *search)
{
	int64_t start_ns = clock_now_ns();
	double fixed_s = search->options->settle_s;
	enum tune_event event = isnan(fixed_s) ? until_steady(search)
					       : tune_wait(search, start_ns + (int64_t)(fixed_s * 1e9));
	search->settled_s += (double)(clock_now_ns() - start_ns) * 1e-9;
	search->n_settled++;
	return event;
}

/* ---- whole runs ---- */

static const int64_t PIECE_NS = 200 * NS_PER_MS; // of a run: mean power of each piece comes from its readings

// The end of the last piece of a run's first seconds in which the device drew more than its limit; 0: there is none.
static int64_t above_until_ns(const struct tune_search *search, const struct run *run, const struct run_device *device,
	const struct tune_stretch *stretch)
{
	const int64_t slowest_ns = (int64_t)(TUNE_SLOWEST_S * 1e9);
	int64_t end_ns = stretch->from_ns + slowest_ns < stretch->to_ns ? stretch->from_ns + slowest_ns
									: stretch->to_ns;
	int64_t until_ns = 0;
	for (int64_t t_ns = stretch->from_ns; t_ns + PIECE_NS <= end_ns; t_ns += PIECE_NS) {
		struct energy_between energy;
		if (energy_between(run, device, run_fact_i64(run, FACT_INTERVAL), t_ns, t_ns + PIECE_NS, &energy) < 0)
			continue;
		double w = (energy.j - energy.error_j) / ((double)PIECE_NS * 1e-9);
		if (tune_steady_is_above(&search->steady, limit_w(search->group), w))
			until_ns = t_ns + PIECE_NS;
	}
	return until_ns;
}

bool tune_began_early(struct tune_search *search, const struct run *run, const struct tune_stretch *stretch)
{
	const struct tune_group *group = search->group;
	int64_t until_ns = 0;
	for (size_t i = 0; i < group->n && !search->exceeds; i++) {
		const struct domain *domain = group->devices->sensors.devices[sensor_of(search, i)];
		const struct run_device *device = tune_device_of(run, domain);
		int64_t above_ns = device != NULL ? above_until_ns(search, run, device, stretch) : 0;
		until_ns = above_ns > until_ns ? above_ns : until_ns;
	}
	struct tune_steady *steady = &search->steady;
	bool is_above = until_ns > 0, is_early = since_set_s(search, stretch->from_ns) < TUNE_SLOWEST_S;
	if (is_above && is_early && isnan(search->options->settle_s)) {
		steady->above_s = since_set_s(search, until_ns);
		return true;
	}
	search->exceeds |= is_above; // then it is how the device begins, whatever the time since the limit was set
	if (!is_above)
		tune_steady_learn(steady, steady->above_s);
	return false;
}
