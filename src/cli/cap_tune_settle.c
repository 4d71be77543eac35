/* After a limit was set: until power is steady. Firmware takes its time, and so do fans and clocks. The meters are read by
 * ourselves meanwhile; what the recorder reads comes in batches. */
#include "cli/cap_tune.h"

#include "base/util.h"

#include <unistd.h>

/* Stretches of time of which two in a row agree; each is longer than the one before, so that the ups and downs of a program's
 * own steps even out. */
static const int64_t FIRST_STRETCH_NS = 100 * NS_PER_MS, MOST_NS = 10 * NS_PER_S;
static const double LONGER = 1.5, AGREES = 0.02, AGREES_W = 0.5;
enum { UPDATES_A_STRETCH = 4 };

struct look {
	double energy_j, power_w; // NaN: none
	int64_t t_ns;
};

static double add_known(double sum, double value)
{
	return isnan(sum) ? value : isnan(value) ? sum : sum + value;
}

static struct look look(struct tune_search *search)
{
	struct tune_devices *devices = search->group->devices;
	struct look seen = {(double)NAN, (double)NAN, env_now_ns(&devices->env)};
	const struct sensor_context context = {
		.t_ns = seen.t_ns,
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.self_pid = getpid(),
	};
	sensor_set_read(&devices->sensors, &context, search->rows);
	for (size_t i = 0; i < search->group->n; i++) {
		size_t sensor = devices->at[search->group->first + i].sensor;
		const int64_t *row = search->rows[sensor];
		if (!devices->sensors.devices[sensor]->has_energy) {
			seen.power_w = add_known(seen.power_w, value_to_double(row[DEVICE_POWER], 1e-3));
			continue;
		}
		struct counter *counter = &search->counters[sensor];
		counter_feed(counter, context.t_ns, row[DEVICE_ENERGY], false);
		if (counter->primed)
			seen.energy_j = add_known(seen.energy_j, (double)counter->total * 1e-6);
	}
	return seen;
}

static int64_t shortest_ns(const struct tune_search *search)
{
	const struct tune_devices *devices = search->group->devices;
	int64_t slowest_ns = 0;
	for (size_t i = 0; i < search->group->n; i++) {
		const struct domain *domain = devices->sensors.devices[devices->at[search->group->first + i].sensor];
		slowest_ns = domain->update_period_ns > slowest_ns ? domain->update_period_ns : slowest_ns;
	}
	slowest_ns *= UPDATES_A_STRETCH;
	return slowest_ns > FIRST_STRETCH_NS ? slowest_ns : FIRST_STRETCH_NS;
}

static double mean_w(const struct look *from, const struct look *to)
{
	double seconds = (double)(to->t_ns - from->t_ns) * 1e-9;
	return add_known((to->energy_j - from->energy_j) / seconds, (from->power_w + to->power_w) / 2);
}

static enum tune_event until_steady(struct tune_search *search)
{
	int64_t stretch_ns = shortest_ns(search), start_ns = bench_now_ns();
	double before_w = (double)NAN;
	struct look from = look(search);
	while (bench_now_ns() - start_ns + stretch_ns <= MOST_NS) {
		enum tune_event event = tune_wait(search, bench_now_ns() + stretch_ns);
		if (event != TUNE_GOES_ON)
			return event;
		struct look to = look(search);
		double w = mean_w(&from, &to);
		if (fabs(w - before_w) <= AGREES * fabs(w) + AGREES_W)
			return TUNE_GOES_ON;
		if (isnan(w) && stretch_ns > shortest_ns(search))
			break; // there is nothing to wait for: the device tells no power
		before_w = w;
		from = to;
		stretch_ns = (int64_t)((double)stretch_ns * LONGER);
	}
	search->n_unsettled++;
	return TUNE_GOES_ON;
}

enum tune_event tune_settle(struct tune_search *search)
{
	int64_t start_ns = bench_now_ns();
	double fixed_s = search->options->settle_s;
	if (search->steps->whole_runs && isnan(fixed_s))
		return TUNE_GOES_ON; // nothing runs yet, and a run begins as it always does
	enum tune_event event = isnan(fixed_s) ? until_steady(search) : tune_wait(search, start_ns + (int64_t)(fixed_s * 1e9));
	search->settled_s += (double)(bench_now_ns() - start_ns) * 1e-9;
	search->n_settled++;
	return event;
}
