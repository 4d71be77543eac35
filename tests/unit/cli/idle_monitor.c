#include "cli/sensors.h"

#include "base/util.h"
#include "rows.h"

#include <string.h>

enum { LOOK_MS = 25, SECONDS = 10 };

// A domain of constant power with a ripple, sampled every 25 ms for ten windows of a second.
static const struct row {
	const char *teaches;
	double power_w, ripple_w, ripple_s;
	int64_t period_ms, stated_period_ms; // of the counter; 0: power readings only; and what the domain states
	uint64_t step_uj, range_uj, start_uj;
	bool steady;
	double error_below_w;
} rows[] = {
	{"counter updated every millisecond", 20, 0, 1, 1, 1, 61, 0, 5, true, 0.01},
	{"GPU counter updated every 100 ms: updates are dated to one sample", 30, 0, 1, 100, 100, 1000, 0, 5, true,
		0.3},
	{"GPU counter of unknown update period", 30, 0, 1, 100, 0, 1000, 0, 5, true, 0.3},
	{"counter updated once a second, in whole joules", 250, 0, 1, 1000, 1000, 1000000, 0, 5, true, 2},
	{"small ripple: still idle", 20, 0.4, 1.7, 1, 1, 61, 0, 5, true, 0.5},
	{"power varies by half: not idle", 20, 10, 4, 1, 1, 61, 0, 5, false, INFINITY},
	{"counter wraps during the measurement", 20, 0, 1, 1, 1, 61, 60000000, 59000000, true, 0.01},
	{"power readings only", 15, 0.2, 1.7, 0, 0, 0, 0, 0, true, 0.2},
};

static double energy_j(const struct row *row, double t_s)
{
	const double omega = 2 * M_PI / row->ripple_s;
	return row->power_w * t_s + row->ripple_w / omega * (1 - cos(omega * t_s));
}

static void read_row(const struct row *row, int64_t t_ms, int64_t values[DEVICE_COUNT])
{
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		values[m] = VALUE_MISSING;
	values[DEVICE_TEMPERATURE] = 40;
	if (row->period_ms == 0) {
		double t_s = (double)t_ms * 1e-3;
		values[DEVICE_POWER] = llround((energy_j(row, t_s + 5e-4) - energy_j(row, t_s - 5e-4)) * 1e6);
		return;
	}
	double updated_s = (double)(t_ms / row->period_ms * row->period_ms) * 1e-3;
	uint64_t uj = (uint64_t)(energy_j(row, updated_s) * 1e6);
	uj = row->start_uj + uj / row->step_uj * row->step_uj;
	values[DEVICE_ENERGY_RAW] = (int64_t)(row->range_uj > 0 ? uj % (row->range_uj + 1) : uj);
}

static void watch_row(const struct row *row, struct domain *domain, struct idle_monitor *watch)
{
	*domain = (struct domain){
		.has_energy = row->period_ms > 0,
		.energy_range_uj = row->range_uj,
		.resolution_uj = row->step_uj,
		.update_period_ns = row->stated_period_ms * NS_PER_MS,
		.max_power_w = 2000,
	};
	idle_monitor_init(watch, domain, 0);
	for (int64_t t_ms = LOOK_MS; t_ms <= SECONDS * 1000; t_ms += LOOK_MS) {
		int64_t values[DEVICE_COUNT];
		read_row(row, t_ms, values);
		idle_monitor_feed(watch, t_ms * NS_PER_MS, values);
		if (t_ms % 1000 == 0)
			idle_monitor_end_window(watch);
	}
}

static void check(void **state)
{
	const struct row *row = *state;
	static struct idle_monitor watch;
	struct domain domain;
	struct idle_result result, steady;
	watch_row(row, &domain, &watch);
	assert_true(idle_monitor_result(&watch, &result));
	assert_int_equal(idle_monitor_is_steady(&watch, &steady), row->steady);
	assert_true(result.error_w > 0 && result.error_w < row->error_below_w);
	double truth_w = energy_j(row, SECONDS) / SECONDS;
	assert_true(fabs(result.idle_w - truth_w) <= result.error_w + 0.02 * row->ripple_w);
	assert_true(result.temperature_c == 40);
	assert_true(result.seconds > SECONDS - 2.1 && result.seconds <= SECONDS);
}

static void nothing_moves(void **state)
{
	static const struct row still = {.period_ms = 1, .step_uj = 1, .ripple_s = 1};
	static struct idle_monitor watch;
	struct domain domain;
	struct idle_result result;
	watch_row(&still, &domain, &watch);
	assert_false(idle_monitor_result(&watch, &result));
	assert_true(idle_monitor_is_steady(&watch, &result));
}

static void reset(void **state)
{
	static const struct row good = {.power_w = 20, .period_ms = 1, .step_uj = 1, .ripple_s = 1};
	static struct idle_monitor watch;
	struct domain domain;
	struct idle_result result;
	int64_t values[DEVICE_COUNT];
	watch_row(&good, &domain, &watch);
	read_row(&good, 0, values);
	idle_monitor_feed(&watch, (SECONDS * 1000 + LOOK_MS) * NS_PER_MS, values);
	assert_false(idle_monitor_result(&watch, &result));
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "counter that never changes: no result", nothing_moves);
	ROWS_ADD_ONE(&tests, "counter that restarts: earlier readings are dropped", reset);
	return rows_run(&tests, "idle_watch");
}
