#include "builder.h"

/* 10 s at 10 Hz at 20 W, each source of error on its own. */
static void no_change(struct run *run)
{
}

static void stated(struct run *run)
{
	run->devices[0].relative_error = 0.02;
}

static void integrated(struct run *run)
{
	struct run_device *device = &run->devices[0];
	for (size_t i = 0; i < run->n; i++) {
		device->values[DEVICE_ENERGY][i] = VALUE_MISSING;
		device->values[DEVICE_POWER][i] = 20000;
	}
}

static void modelled(struct run *run)
{
	integrated(run);
	run->devices[0].provenance = PROVENANCE_ESTIMATED;
}

static void modelled_better(struct run *run)
{
	modelled(run);
	run->devices[0].relative_error = 0.3;
}

// 2 s of power readings are missing: 21 W * 2 s, beside 5 % of 160 J.
static void with_a_hole(struct run *run)
{
	integrated(run);
	for (size_t i = 30; i < 49; i++)
		run->devices[0].values[DEVICE_POWER][i] = VALUE_MISSING;
}

static void reset(struct run *run)
{
	for (size_t i = 50; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] -= 2000000;
	build_event(run, 5, "reset", "package-0: the energy counter was reset");
}

static void stamped(struct run *run)
{
	build_stamps(&run->devices[0]);
}

static void whole_joules(struct run *run)
{
	stamped(run);
	run->devices[0].resolution_j = 1;
}

// One more wrap was possible, which would have been 1 kJ.
static void wrapped_unseen(struct run *run)
{
	stamped(run);
	run->devices[0].energy_range_j = 1000;
	build_event(run, 5, "wrap", "package-0: the energy counter wrapped; it had time for more than once");
}

static void stands_still(struct run *run)
{
	stamped(run);
	for (size_t i = 60; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] = run->devices[0].values[DEVICE_ENERGY][60];
}

// Falling by 10 W in the first second: 9.3 W from the mean of its first eighth to the power after it.
static void integrated_average(struct run *run)
{
	integrated(run);
	run->devices[0].kind = DOMAIN_GPU;
	for (size_t i = 0; i < 10; i++)
		run->devices[0].values[DEVICE_POWER][i] = 20000 + (int64_t)(10 - i) * 1000;
}

// As if the reading before the last came just at the end, and the last one after the site's epilog.
static void read_again_later(struct run *run)
{
	run->segments[0].end_ns -= NS_PER_S / 10;
}

// 100 W for a while; the run ends 10 ms after the reading before the last, which comes 90 ms later.
static void read_later_after_a_burst(struct run *run)
{
	for (size_t i = 6; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] += 8000000;
	run->segments[0].end_ns -= 9 * NS_PER_S / 100;
}

static const struct error_row {
	const char *teaches;
	void (*change)(struct run *run);
	double update_s;
	double error_j;
} error_rows[] = {
	/* 2 * sqrt of (20 W * 0.05 s)^2 / 3 at both ends; (20 W * 0.05 s)^2 / 3 at the start, half-way between two
	 * updates, since power may have been anything from 0 to 42 W; (22 W * 0.05 s)^2 / 3 at the end, 0.05 s after
	 * the last one. */
	{"counter: its last update is anywhere within a period", no_change, 0.1, 2.36924741919},
	{"fast counter: nearly exact", no_change, 0.001, 0.0277839306075},
	{"unknown period: at most the interval", no_change, NAN, 2.36924741919},
	{"further reading 0.1 s after the end: adds the error of half a period at 20 W", read_again_later, 0.001,
		0.0260235841754},
	{"last 10 ms, between distant readings, at the highest power seen: 1 J, and the ends", read_later_after_a_burst,
		0.001, 1.06730204914},
	{"counter with timestamps: no error at the ends", stamped, 0.1, 0},
	{"counter with timestamps: error of at least one step, as 2 * sqrt(2 / 12) of it is less", whole_joules, 0.1,
		1},
	{"sensor's own error: 2 % of 200 J, and the ends", stated, 0.001, 4.00009649219},
	{"integrated power: at least 5 %", integrated, NAN, 10},
	// 9.3 W * (1 s + 0.1 s); excludes the gain error of a GPU's sensor
	{"integrated GPU power, a one-second mean that may be repeated for a second: late by that and an update",
		integrated_average, NAN, 10.2300814594},
	{"a model: 50 %", modelled, NAN, 100},
	{"model with a stated error: that error", modelled_better, NAN, 60},
	{"gap of 2 s: all of it at the highest power seen, which may be 5 % more", with_a_hole, NAN, 42.7551166529},
	{"counter that stops for the last 4 s: all of it at the highest power seen", stands_still, 0.1, 80},
	{"reset: 0.1 s and a period at 20 W, and the ends", reset, 0.001, 2.02219087793},
	{"unobserved wraps: one more or fewer", wrapped_unseen, 0.1, 1000},
};

static void check_error(void **state)
{
	const struct error_row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_metered(&run, "package-0", DOMAIN_PACKAGE, 20)->update_period_s = row->update_s;
	row->change(&run);
	assert_int_equal(findings_make(&run, &findings), 0);
	if (!(fabs(findings.error_j - row->error_j) <= fmax(1e-6 * row->error_j, 1e-9)))
		fail_msg("%.12g is not %.12g", findings.error_j, row->error_j);
	findings_finish(&findings);
	build_finish(&run);
}

static const struct sum_row {
	const char *teaches;
	enum provenance provenance;
	double error_j; // of two domains of 200 J with an error of 10 % each
} sum_rows[] = {
	{"independent errors: root of the sum of squares", PROVENANCE_DERIVED, 28.284271247461902},
	{"errors of one model: added", PROVENANCE_ESTIMATED, 40},
};

static void check_sum(void **state)
{
	const struct sum_row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	for (int i = 0; i < 2; i++) {
		struct run_device *device = build_powered(&run, i == 0 ? "package-0" : "package-1", DOMAIN_PACKAGE, 20);
		device->provenance = row->provenance;
		device->relative_error = 0.1;
	}
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.error_j, row->error_j);
	findings_finish(&findings);
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, error_rows, check_error);
	ROWS_ADD(&tests, sum_rows, check_sum);
	return rows_run(&tests, "uncertainty");
}
