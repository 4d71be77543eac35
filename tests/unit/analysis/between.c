/* Energy between two instants of a growing run: from counters and from power, beyond the last reading, and over
 * gaps. */
#include "energy/curve.h"

#include "analysis/metadata_keys.h"

#include "builder.h"

struct row {
	const char *teaches;
	void (*change)(struct run *run, struct run_device *device);
	double from_s, to_s;
	double j; // NaN: unknown
	double error_max_j;
	bool from_power;
};

static void none(struct run *run, struct run_device *device)
{
}

static void nothing(struct run *run, struct run_device *device)
{
	for (size_t i = 0; i < device->n; i++)
		device->values[DEVICE_ENERGY][i] = VALUE_MISSING;
}

static void power(struct run *run, struct run_device *device)
{
	nothing(run, device);
	device->has_energy = false;
	for (size_t i = 0; i < device->n; i++)
		device->values[DEVICE_POWER][i] = i < 50 ? 20000 : 40000;
}

static void power_with_a_hole(struct run *run, struct run_device *device)
{
	power(run, device);
	for (size_t i = 30; i < 60; i++)
		device->values[DEVICE_POWER][i] = VALUE_MISSING;
}

static void two_recordings(struct run *run, struct run_device *device)
{
	run->segments[0].end_ns = at_s(5.05);
	build_segment(run, 5.05, 10);
}

// The reference machine: 10 s at 10 Hz, 20 W by a counter that is updated with each sample.
static const struct row rows[] = {
	{"between two updates", none, 2, 8, 120, 2.4, false},
	{"ends between readings", none, 2.034, 7.977, 118.86, 2, false},
	{"interval of zero length: 0 J", none, 3, 3, 0, 1, false},
	{"power, without a counter", power, 1, 3, 40, 2, true},
	{"power that changes", power, 3, 7, 121, 22.1, true},
	{"gap in the power readings: unknown", power_with_a_hole, 2, 7, NAN, 0, true},
	{"beside the gap: known", power_with_a_hole, 7, 9, 80, 3, true},
	{"no reading", nothing, 2, 8, NAN, 0, false},
	{"before the start: unknown", none, -1, 5, NAN, 0, false},
	{"after the last reading: unknown", none, 5, 12, NAN, 0, false},
	{"across two recordings: unknown", two_recordings, 4, 6, NAN, 0, false},
	{"within the second recording: known", two_recordings, 6, 8, 40, 2.4, false},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct run run;
	struct energy_between energy;
	build_simple(&run, 101);
	struct run_device *device = build_metered(&run, "gpu-0", DOMAIN_GPU, 20);
	device->update_period_s = 0.1;
	device->update_jitter_s = 0.001;
	row->change(&run, device);
	assert_int_equal(energy_between(&run, device, run_metadata_i64(&run, META_KEY_INTERVAL), at_s(row->from_s),
				 at_s(row->to_s), &energy),
		0);
	if (isnan(row->j)) {
		assert_true(isnan(energy.j) && isnan(energy.error_j));
	} else {
		if (!(fabs(energy.j - row->j) <= energy.error_j + 1e-6) || !(energy.error_j <= row->error_max_j))
			fail_msg("%.3f ± %.3f J is not %.3f ± %.3f J", energy.j, energy.error_j, row->j,
				row->error_max_j);
		assert_int_equal(energy.from_power, row->from_power);
	}
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "between");
}
