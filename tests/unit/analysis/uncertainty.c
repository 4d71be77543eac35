#include "builder.h"

static uint64_t next_random(uint64_t *state) // xorshift64*
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static double uniform(uint64_t *state)
{
	return (double)(next_random(state) >> 11) / 9007199254740992.0;
}

// Power that changes level each second; its energy is known exactly.
struct power {
	double level_w[16];
};

static struct power random_power(uint64_t *state)
{
	struct power power;
	for (size_t i = 0; i < ARRAY_SIZE(power.level_w); i++)
		power.level_w[i] = 10 + 90 * uniform(state);
	return power;
}

static double true_energy_j(const struct power *power, double t_s)
{
	double j = 0;
	for (size_t i = 0; i < ARRAY_SIZE(power->level_w); i++) {
		double in_s = t_s - (double)i;
		j += in_s > 0 ? power->level_w[i] * fmin(in_s, 1) : 0;
	}
	return j;
}

/* A counter of this kind, read over a run of a few seconds that begins and ends anywhere. */
static const struct counter_row {
	const char *teaches;
	double update_s, quantum_j;
	bool period_known;
} counter_rows[] = {
	{"a GPU's counter, updated each 100 ms", 0.1, 0.001, true},
	{"RAPL: 1 ms", 0.001, 0.000061, true},
	{"whole joules, ten times a second", 0.1, 1, true},
	{"an update period that nobody measured", 0.1, 0.001, false},
};

static bool covers(const struct counter_row *row, uint64_t *random)
{
	struct power power = random_power(random);
	double phase_s = row->update_s * uniform(random), begin_s = 1 + uniform(random),
	       length_s = 1 + 4 * uniform(random);
	size_t n = (size_t)(length_s / 0.1) + 1;
	struct run run;
	struct findings findings;
	build_run(&run, n);
	build_times(&run, 0, n, begin_s, 0.1);
	double end_s = begin_s + (double)(n - 1) * 0.1;
	build_segment(&run, begin_s, end_s);
	struct run_device *device = build_device(&run, "gpu-0", DOMAIN_GPU);
	device->update_period_s = row->period_known ? row->update_s : (double)NAN;
	device->resolution_j = row->quantum_j;
	for (size_t i = 0; i < n; i++) {
		double t_s = begin_s + (double)i * 0.1;
		double updated_s = floor((t_s - phase_s) / row->update_s) * row->update_s + phase_s;
		double j = floor(true_energy_j(&power, updated_s) / row->quantum_j) * row->quantum_j;
		device->values[DEVICE_ENERGY][i] = llround(j * 1e6);
	}
	assert_int_equal(findings_make(&run, &findings), 0);
	double truth_j = true_energy_j(&power, end_s) - true_energy_j(&power, begin_s);
	bool covered = fabs(findings.total_j - truth_j) <= findings.error_j;
	assert_true(findings.error_j < 0.25 * truth_j); // an error bar that covers everything says nothing
	findings_finish(&findings);
	build_finish(&run);
	return covered;
}

static void check_counter(void **state)
{
	const struct counter_row *row = *state;
	uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
	const int runs = 2000;
	int covered = 0;
	for (int i = 0; i < runs; i++)
		covered += covers(row, &random);
	if (covered < runs * 95 / 100)
		fail_msg("the error bar held the truth in %d of %d runs only", covered, runs);
}

/* 10 s at 10 Hz under 20 W, each error alone. */
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

// 2 s of power readings are missing: ± half of twice 20 W * 2 s, beside 5 % of 160 J.
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

static const struct error_row {
	const char *teaches;
	void (*change)(struct run *run);
	double update_s;
	double error_j;
} error_rows[] = {
	// 2 * sqrt(2 * (20 W * 0.1 s)^2 / 12)
	{"a counter: one update period at both ends", no_change, 0.1, 1.632993161855452},
	{"a fast counter is nearly exact", no_change, 0.001, 0.016329931618554523},
	{"an unknown period is at most the interval", no_change, NAN, 1.632993161855452},
	{"the sensor's own error: 2 % of 200 J, and the ends", stated, 0.001, 4.000033333194445},
	{"integrated power: at least 5 %", integrated, NAN, 10},
	{"a model: 50 %", modelled, NAN, 100},
	{"a model that says how wrong it is", modelled_better, NAN, 60},
	{"a hole: twice half of what the rest suggests", with_a_hole, NAN, 40.792156108742276},
	{"a reset: 0.1 s at 19.8 W, and the ends", reset, 0.001, 1.9800670672},
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
	if (!(fabs(findings.error_j - row->error_j) <= 1e-6 * row->error_j))
		fail_msg("%.12g is not %.12g", findings.error_j, row->error_j);
	findings_finish(&findings);
	build_finish(&run);
}

static const struct sum_row {
	const char *teaches;
	enum provenance provenance;
	double error_j; // of two domains of 200 J that are off by 10 % each
} sum_rows[] = {
	{"independent errors: the root of the sum of the squares", PROVENANCE_DERIVED, 28.284271247461902},
	{"one model: its errors add up", PROVENANCE_ESTIMATED, 40},
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
	ROWS_ADD(&tests, counter_rows, check_counter);
	ROWS_ADD(&tests, error_rows, check_error);
	ROWS_ADD(&tests, sum_rows, check_sum);
	return rows_run(&tests, "uncertainty");
}
