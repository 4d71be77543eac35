/* Power reported to --progress when a device becomes readable some time after the start. */
#include "sampler/recorder.h"

#include "base/util.h"
#include "rows.h"

enum { DEVICES = 2, LINES = 4 };

static const struct late {
	const char *teaches;
	int64_t power_mw[DEVICES][LINES]; // at the end of each second; the device's power is constant
	double expected_w[LINES], expected_j;
} lates[] = {
	{"both devices readable from the start", {{30000, 30000, 30000, 30000}, {200000, 200000, 200000, 200000}},
		{230, 230, 230, 230}, 920},
	{"late device: its earlier energy causes no peak",
		{{30000, 30000, 30000, 30000}, {VALUE_MISSING, 200000, 200000, 200000}}, {30, 30, NAN, 230}, 920},
	{"the only device is late",
		{{VALUE_MISSING, 30000, 30000, 30000}, {VALUE_MISSING, VALUE_MISSING, VALUE_MISSING, VALUE_MISSING}},
		{NAN, NAN, NAN, 30}, 120},
};

static void remember(void *data, const struct recorder_progress *progress)
{
	*(struct recorder_progress *)data = *progress;
}

static void watts(void **state)
{
	const struct late *row = *state;
	static struct recorder recorder;
	struct domain domains[DEVICES] = {{.name = "a", .kind = DOMAIN_GPU}, {.name = "b", .kind = DOMAIN_GPU}};
	const struct domain *devices[DEVICES] = {&domains[0], &domains[1]};
	struct sensor_set set = {.devices = devices, .n_devices = DEVICES};
	struct counter counters[DEVICES] = {0};
	struct update_period periods[DEVICES] = {0};
	int64_t rows[DEVICES][DEVICE_COUNT];
	struct recorder_progress reported;
	const struct recorder_options options = {.progress = remember, .data = &reported};
	recorder = (struct recorder){
		.options = &options,
		.sampler = {.sensors = &set, .counters = counters, .rows = rows, .periods = periods},
		.start_ns = 1000 * NS_PER_S,
		.progress_t_ns = 1000 * NS_PER_S,
		.progress_energy_j = (double)NAN,
	};
	assert_int_equal(running_energy_open(&recorder.running, &recorder.sampler), 0);
	for (int i = 0; i < LINES; i++) {
		recorder.sampler.last_t_ns = recorder.start_ns + (i + 1) * NS_PER_S;
		for (int d = 0; d < DEVICES; d++)
			rows[d][DEVICE_POWER] = row->power_mw[d][i];
		running_energy_tick(&recorder.running, &recorder.sampler, recorder.start_ns);
		recorder_report_progress(&recorder);
		if (isnan(row->expected_w[i]))
			assert_true(isnan(reported.power_w));
		else
			assert_float_equal(reported.power_w, row->expected_w[i], 1e-6);
	}
	assert_float_equal(reported.energy_j, row->expected_j, 1e-6); // no energy is lost
	running_energy_close(&recorder.running);
}

/* A counter of 50 W that is updated every 700 ms, read every 100 ms; the period is unknown until the recorder has
 * detected it, if ever. */
static const struct slow {
	const char *teaches;
	int64_t detected_ms; // time of the detection; 0: never
} slows[] = {
	{"slow counter whose period is detected after 2.9 s", 2900},
	{"slow counter whose period is never detected, as on a busy machine", 0},
};

static void slow_counter(void **state)
{
	enum { TICK_MS = 100, UPDATE_MS = 700, TICKS = 60, TICKS_A_LINE = 10, POWER_W = 50 };
	const struct slow *row = *state;
	static struct recorder recorder;
	struct domain domain = {.name = "package-0", .kind = DOMAIN_PACKAGE, .has_energy = true, .max_power_w = 500};
	const struct domain *devices[] = {&domain};
	struct sensor_set set = {.devices = devices, .n_devices = 1};
	struct counter counter = {0};
	struct update_period period = {0};
	int64_t rows[1][DEVICE_COUNT];
	struct recorder_progress reported;
	int n_known = 0;
	const struct recorder_options options = {.progress = remember, .data = &reported};
	recorder = (struct recorder){
		.options = &options,
		.sampler = {.sensors = &set,
			.counters = &counter,
			.rows = rows,
			.periods = &period,
			.options = {.interval_ns = TICK_MS * NS_PER_MS}},
		.start_ns = 1000 * NS_PER_S,
		.progress_t_ns = 1000 * NS_PER_S,
		.progress_energy_j = (double)NAN,
	};
	for (int metric = 0; metric < DEVICE_COUNT; metric++)
		rows[0][metric] = VALUE_MISSING;
	assert_int_equal(running_energy_open(&recorder.running, &recorder.sampler), 0);
	for (int i = 0; i <= TICKS; i++) {
		int64_t ms = (int64_t)i * TICK_MS + 50; // readings are not at the updates
		recorder.sampler.last_t_ns = recorder.start_ns + (int64_t)i * TICK_MS * NS_PER_MS;
		period.period_ns = row->detected_ms > 0 && ms >= row->detected_ms ? UPDATE_MS * NS_PER_MS : 0;
		rows[0][DEVICE_ENERGY] = ms / UPDATE_MS * UPDATE_MS * POWER_W * 1000;
		running_energy_tick(&recorder.running, &recorder.sampler, recorder.start_ns);
		if (i % TICKS_A_LINE != 0 || i == 0)
			continue;
		recorder_report_progress(&recorder);
		if (isnan(reported.power_w))
			continue;
		n_known++;
		assert_float_equal(reported.power_w, POWER_W, 0.2 * POWER_W); // two readings of 100 ms in a second
	}
	assert_true(n_known >= 2);
	running_energy_close(&recorder.running);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, lates, watts);
	ROWS_ADD(&tests, slows, slow_counter);
	return rows_run(&tests, "progress");
}
