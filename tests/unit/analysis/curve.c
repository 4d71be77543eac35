#include "energy/curve.h"

#include "machine.h"

/* Points of a counter's energy curve. The reference: 10 s at 10 Hz, 20 W, updated with each sample, a period of 100
 * ms with 1 ms of jitter. Checked: time and uncertainty of the first point and of one in the middle. */
static void no_change(struct run_device *device)
{
}

static void period_unknown(struct run_device *device)
{
	device->update_period_s = (double)NAN;
}

// A busy machine: the recorder's nine readings 1 ms apart before the sample at 5 s each returned a new value.
static void always_new(struct run_device *device)
{
	device->update_period_s = (double)NAN;
	for (size_t i = 41; i < 50; i++)
		device->t_ns[i] = at_s(5 - 0.001 * (double)(50 - i));
}

static void stamps(struct run_device *device)
{
	for (size_t i = 0; i < device->n; i++)
		device->values[DEVICE_ENERGY_TIME][i] = device->t_ns[i] - 30 * NS_PER_MS;
}

static void stamps_after_reading(struct run_device *device)
{
	for (size_t i = 0; i < device->n; i++)
		device->values[DEVICE_ENERGY_TIME][i] = device->t_ns[i] + 1;
}

// As read by wattle's helper: a little after the sample's request, and the hardware is up to 1 ms behind.
static void stamps_of_the_helper(struct run_device *device)
{
	text_copy(device->source, sizeof(device->source), "powercap");
	for (size_t i = 0; i < device->n; i++)
		device->values[DEVICE_ENERGY_TIME][i] = device->t_ns[i] + 4 * NS_PER_MS;
}

static void stamps_of_yesterday(struct run_device *device)
{
	for (size_t i = 0; i < device->n; i++)
		device->values[DEVICE_ENERGY_TIME][i] = device->t_ns[i] - 1000 * NS_PER_S;
}

static void stamps_stand_still(struct run_device *device)
{
	for (size_t i = 0; i < device->n; i++)
		device->values[DEVICE_ENERGY_TIME][i] = device->t_ns[0];
}

// Two readings 5 ms apart just before the sample at 5 s: its update was between them.
static void one_sharp(struct run_device *device)
{
	device->t_ns[49] = at_s(4.995);
	device->values[DEVICE_ENERGY][49] = device->values[DEVICE_ENERGY][48];
}

/* The first update after the start was between 0.095 and 0.1 s; so the previous one was between -0.007 s (a
 * hundredth of the period is added to the jitter) and the reading at 0 s that returned it. */
static void sharp_at_the_start(struct run_device *device)
{
	device->t_ns[1] = at_s(0.095);
	device->values[DEVICE_ENERGY][1] = device->values[DEVICE_ENERGY][0];
	device->t_ns[2] = at_s(0.1);
	device->values[DEVICE_ENERGY][2] = 2000000;
}

// The curve has a corner at the start, one point more.
static void updated_each_second(struct run_device *device)
{
	for (size_t i = 0; i < device->n; i++)
		device->values[DEVICE_ENERGY][i] = device->values[DEVICE_ENERGY][i - i % 10];
}

static const struct row {
	const char *teaches;
	void (*change)(struct run_device *device);
	size_t point;
	double t_s, within_s, period_s;
} rows[] = {
	{"new value: updated since the reading before", no_change, 50, 4.95, 0.05, 0.1},
	{"first value: updated within a period", no_change, 0, -0.05, 0.05, 0.1},
	{"unknown period: the sampling interval", period_unknown, 0, -0.05, 0.05, NAN},
	{"unknown period, every reading returned a new value: at most 7 periods in 8 ms, and a quarter more",
		always_new, 40, 4 - 0.01 / 14, 0.01 / 14, NAN},
	{"counter timestamp: used", stamps, 50, 4.97, 0, 0.1},
	{"timestamp later than the reading: ignored", stamps_after_reading, 50, 4.95, 0.05, 0.1},
	{"timestamp of the helper's reading: up to a millisecond after the update", stamps_of_the_helper, 50, 5.0035,
		0.0005, 0.1},
	{"timestamp of long ago: ignored", stamps_of_yesterday, 50, 4.95, 0.05, 0.1},
	{"unchanged value: used once; its neighbours are less certain by as many jitters", stamps_stand_still, 10, 0.99,
		0.01, 0.1},
	{"two readings close together: a precise update time", one_sharp, 49, 4.9975, 0.0025, 0.1},
	{"point before the first reading: a period earlier", sharp_at_the_start, 0, -0.0035, 0.0035, 0.1},
	{"counter that changes once a second: measured period, whatever was stated", updated_each_second, 6, 4.95, 0.05,
		1},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct run run;
	struct curve curve;
	build_simple(&run, 101);
	struct run_device *device = build_metered(&run, "gpu-0", DOMAIN_GPU, 20);
	device->t_ns = arena_alloc(run.arena, run.n, sizeof(int64_t));
	memcpy(device->t_ns, run.t_ns, run.n * sizeof(int64_t));
	device->update_period_s = 0.1;
	device->update_jitter_s = 0.001;
	row->change(device);
	assert_int_equal(curve_make(&run, device, 100 * NS_PER_MS, run.arena, &curve), 0);
	assert_close(curve.updates.period_s, row->period_s);
	double t_s = (double)(curve.t_ns[row->point] - build_start_ns) / 1e9;
	if (fabs(t_s - row->t_s) > 1e-6 || fabs(curve.within_s[row->point] - row->within_s) > 1e-6)
		fail_msg("%.6f ± %.6f s is not %.6f ± %.6f s", t_s, curve.within_s[row->point], row->t_s,
			row->within_s);
	build_finish(&run);
}

/* Counters that never change, and domains with two meters: 10 s at 10 Hz, a GPU of 100 W by its counter and of
 * power_w by its power readings (NAN: none). */
static void stuck_from_the_start(struct run *run)
{
	for (size_t i = 0; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] = 12345;
}

static void stuck_after_4_s(struct run *run)
{
	for (size_t i = 41; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] = run->devices[0].values[DEVICE_ENERGY][40];
}

// Only two samples, 50 ms apart: no time for an update.
static void too_short(struct run *run)
{
	stuck_from_the_start(run);
	run->n = run->devices[0].n = 2;
	run->t_ns[1] = at_s(0.05);
	run->segments[0].end_ns = at_s(0.05);
}

static void switched_off(struct run *run)
{
	stuck_from_the_start(run);
	run->devices[0].kind = DOMAIN_UNCORE;
}

static void as_it_is(struct run *run)
{
}

// Only every third row is a sample, the others are quick readings without power.
static void quick_looks(struct run *run)
{
	struct run_device *device = &run->devices[0];
	device->t_ns = arena_alloc(run->arena, run->n, sizeof(int64_t));
	memcpy(device->t_ns, run->t_ns, run->n * sizeof(int64_t));
	size_t n = 0;
	for (size_t i = 0; i < device->n; i++) {
		if (i % 3 == 0)
			run->t_ns[n++] = device->t_ns[i];
		else
			device->values[DEVICE_POWER][i] = VALUE_MISSING;
	}
	run->n = n;
}

static const struct twice_row {
	const char *teaches;
	void (*change)(struct run *run);
	double power_w, energy_j, integrated_j, stalled_s;
	bool disagrees;
	enum provenance provenance;
	int64_t gaps;
} twice_rows[] = {
	{"counter and power agree: counter used", as_it_is, 101, 1000, 1010, 0, false, PROVENANCE_MEASURED, 0},
	{"power 50 % above the counter's: a warning, counter used", as_it_is, 150, 1000, 1500, 0, true, PROVENANCE_MEASURED,
		0},
	{"no power readings: no comparison", as_it_is, NAN, 1000, NAN, 0, false, PROVENANCE_MEASURED, 0},
	{"quick readings between samples: no gaps in the power", quick_looks, 100, 1000, 1000, 0, false,
		PROVENANCE_MEASURED, 0},
	{"counter that never changes: power is used", stuck_from_the_start, 100, 1000, NAN, 10, false,
		PROVENANCE_DERIVED, 0},
	{"counter that stops: power is used", stuck_after_4_s, 100, 1000, NAN, 6, false, PROVENANCE_DERIVED, 0},
	{"counter that stops, no power: energy unknown, not 0", stuck_from_the_start, NAN, NAN, NAN, 10, false,
		PROVENANCE_MEASURED, 1},
	{"counter that stops: its energy before is known", stuck_after_4_s, NAN, 400, NAN, 6, false,
		PROVENANCE_MEASURED, 1},
	{"run too short for its counter: 0 J, with the error of a GPU's highest power", too_short, NAN, 0, NAN, 0,
		false, PROVENANCE_MEASURED, 0},
	{"run too short for its counter, with power readings: their energy", too_short, 100, 5, NAN, 0, false,
		PROVENANCE_DERIVED, 0},
	{"integrated GPU, may be switched off: 0 J", switched_off, NAN, 0, NAN, 0, false, PROVENANCE_MEASURED, 0},
};

static void check_twice(void **state)
{
	const struct twice_row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 1, 0, 0, 1);
	struct run_device *device = build_metered(&run, "gpu-0", DOMAIN_GPU, 100);
	device->update_period_s = 0.1;
	for (size_t i = 0; i < run.n && !isnan(row->power_w); i++)
		device->values[DEVICE_POWER][i] = llround(row->power_w * 1e3);
	build_stamps(device);
	row->change(&run);
	assert_int_equal(findings_make(&run, &findings), 0);
	const struct domain_finding *d = &findings.domains[0];
	assert_close(d->energy_j, row->energy_j);
	assert_close(d->integrated_j, row->integrated_j);
	assert_close(d->stalled_s, row->stalled_s);
	assert_int_equal(d->disagrees, row->disagrees);
	assert_int_equal(d->provenance, row->provenance);
	assert_int_equal(d->gaps, row->gaps);
	findings_finish(&findings);
	build_finish(&run);
}

/* The machine is idle at 50 W, a program of 1 s uses 250 W; the counter is updated at 0.05, 0.15 s … after the
 * start. */
static void ends_are_bent(void **state)
{
	struct run run;
	struct findings findings;
	build_run(&run, 15);
	build_times(&run, 0, 15, -0.15, 0.1);
	build_segment(&run, 0, 1);
	struct run_device *device = build_device(&run, "package-0", DOMAIN_PACKAGE);
	device->update_period_s = 0.1;
	build_stamps(device);
	for (size_t i = 0; i < run.n; i++) {
		double t_s = -0.15 + 0.1 * (double)i, busy_s = fmin(fmax(t_s, 0), 1);
		device->values[DEVICE_ENERGY][i] = llround((50 * (t_s + 0.15) + 200 * busy_s) * 1e6);
	}
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.total_j, 250);
	assert_true(findings.error_j < 0.1 * 250 && findings.error_j > 0);
	findings_finish(&findings);
	build_finish(&run);
}

/* A rank ran for 50 ms before another one, which reads for both, made its first reading; 20 W throughout, an update
 * each ms. */
static void before_the_first_reading(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	struct run_device *device = build_metered(&run, "package-0", DOMAIN_PACKAGE, 20);
	device->update_period_s = 0.001;
	device->t_ns = arena_alloc(run.arena, run.n, sizeof(int64_t));
	memcpy(device->t_ns, run.t_ns, run.n * sizeof(int64_t));
	device->t_ns[0] = at_s(0.05);
	device->values[DEVICE_ENERGY][0] = 1000000;
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_true(fabs(findings.total_j - 200) < 0.05);
	assert_true(fabs(findings.domains[0].mean_w - 20) < 0.005);
	assert_true(findings.error_j > 1 && findings.error_j < 1.2);
	findings_finish(&findings);
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, twice_rows, check_twice);
	ROWS_ADD_ONE(&tests, "power changes with the program, between two updates", ends_are_bent);
	ROWS_ADD_ONE(&tests, "time before the first reading: its power, with an error",
		before_the_first_reading);
	return rows_run(&tests, "curve");
}
