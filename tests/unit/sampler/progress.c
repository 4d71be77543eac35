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
	struct recorder_progress told;
	const struct recorder_options options = {.progress = remember, .data = &told};
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
			assert_true(isnan(told.power_w));
		else
			assert_float_equal(told.power_w, row->expected_w[i], 1e-6);
	}
	assert_float_equal(told.energy_j, row->expected_j, 1e-6); // no energy is lost
	running_energy_close(&recorder.running);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, lates, watts);
	return rows_run(&tests, "progress");
}
