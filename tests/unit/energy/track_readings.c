#include "energy/track.h"

#include "base/util.h"
#include "rows.h"

#define J INT64_C(1000000) // µJ in a joule
static const int64_t MISSING = VALUE_MISSING;
static const uint64_t INTEL = 262143328850, AMD = 65532610987;
static const int64_t MS = NS_PER_MS;

struct reading {
	int64_t t_ms, raw_uj;
	bool starts; // the meter starts here
};

static const struct row {
	const char *teaches;
	struct domain domain;
	struct reading readings[6]; // up to the first with t_ms 0
	double energy_j;            // NaN: unknown
	double min_error_j, max_error_j;
} rows[] = {
	// clang-format off
	{"fast counter: the difference of two readings, error about 1 ms of power",
		{.kind = DOMAIN_PACKAGE, .max_power_w = 2000, .energy_range_uj = INTEL, .resolution_uj = 61, .update_period_ns = 976000},
		{{1000, 5 * J, true}, {3000, 105 * J}}, 100, 0.05, 0.2},
	{"counter updated every 100 ms: error of 1.4 update periods of mean power",
		{.kind = DOMAIN_GPU, .max_power_w = 700, .update_period_ns = 100 * NS_PER_MS},
		{{1000, 5 * J, true}, {3000, 605 * J}}, 600, 30, 61},
	{"unknown update period: taken as 100 ms",
		{.kind = DOMAIN_GPU, .max_power_w = 700},
		{{1000, 5 * J, true}, {3000, 605 * J}}, 600, 30, 61},
	{"start just after a reading: no more energy than the counter counted",
		{.kind = DOMAIN_PACKAGE, .max_power_w = 700},
		{{990, 4 * J}, {999, 5 * J}, {1000, 5 * J + 50000, true}, {1400, 25 * J + 50000}}, 20, 1, 15},
	{"unknown update period, start just after a reading: the updates at both ends may be 100 ms old",
		{.kind = DOMAIN_GPU, .max_power_w = 700},
		{{500, J}, {1000, 51 * J}, {1001, 51 * J, true}, {1151, 66 * J}}, 15 * 150.0 / 151, 10, 17},
	{"no update in the interval: 0 J, error of the highest power that such a domain draws in an update",
		{.kind = DOMAIN_GPU, .max_power_w = 700, .update_period_ns = 100 * NS_PER_MS},
		{{1000, 5 * J, true}, {1030, 5 * J}}, 0, 70, 70},
	{"no update in the interval, power before it known: that power continues",
		{.kind = DOMAIN_GPU, .max_power_w = 700, .update_period_ns = 100 * NS_PER_MS},
		{{1000, 0, true}, {2000, 100 * J, true}, {2030, 100 * J}}, 3, 10, 20},
	{"an update in an interval shorter than a period: its energy was used over the whole period",
		{.kind = DOMAIN_GPU, .max_power_w = 700, .update_period_ns = 100 * NS_PER_MS},
		{{1000, 0, true}, {1010, 10 * J}}, 0.01 * 10 / 0.095, 1, 2},
	{"stated error: a fraction of the energy",
		{.kind = DOMAIN_PACKAGE, .max_power_w = 700, .relative_error = 0.05, .update_period_ns = NS_PER_MS},
		{{1000, 0, true}, {2000, 100 * J}}, 100, 5, 5.1},
	{"error is never below a step of the counter",
		{.kind = DOMAIN_PSYS, .max_power_w = 5000, .resolution_uj = 1000000, .update_period_ns = 1000},
		{{1000, 0, true}, {2000, 100 * J}}, 100, 1, 1},
	{"one wrap is counted",
		{.kind = DOMAIN_PACKAGE, .max_power_w = 2000, .energy_range_uj = INTEL, .update_period_ns = MS},
		{{1000, (int64_t)INTEL - 4 * J, true}, {2000, 6 * J - 1}}, 10, 0, 0.1},
	{"long enough for two wraps at full power: unknown",
		{.kind = DOMAIN_PACKAGE, .max_power_w = 2000, .energy_range_uj = AMD, .update_period_ns = MS},
		{{1000, 0, true}, {101000, 100 * J}}, (double)NAN, 0, 0},
	{"the same time with a reading in between: known",
		{.kind = DOMAIN_PACKAGE, .max_power_w = 2000, .energy_range_uj = AMD, .update_period_ns = MS},
		{{1000, 0, true}, {26000, 2500 * J}, {51000, 5000 * J}, {76000, 7500 * J}, {101000, 10000 * J}}, 10000, 0, 0.3},
	{"counter restarted: unknown until the meter is restarted",
		{.kind = DOMAIN_GPU, .max_power_w = 700, .update_period_ns = MS},
		{{1000, 500 * J, true}, {2000, 3 * J}}, (double)NAN, 0, 0},
	{"meter restarted after that: known",
		{.kind = DOMAIN_GPU, .max_power_w = 700, .update_period_ns = MS},
		{{1000, 500 * J, true}, {2000, 3 * J, true}, {3000, 103 * J}}, 100, 0, 0.3},
	{"unreadable at the start, readable later: unknown",
		{.kind = DOMAIN_GPU, .max_power_w = 700, .update_period_ns = MS},
		{{1000, MISSING, true}, {2000, 3 * J}, {3000, 4 * J}}, (double)NAN, 0, 0},
	{"unreadable at the end: unknown",
		{.kind = DOMAIN_GPU, .max_power_w = 700, .update_period_ns = MS},
		{{1000, J, true}, {2000, MISSING}}, (double)NAN, 0, 0},
	{"unreadable in between: known, the counter continued",
		{.kind = DOMAIN_GPU, .max_power_w = 700, .update_period_ns = MS},
		{{1000, J, true}, {2000, MISSING}, {3000, 201 * J}}, 200, 0, 0.3},
	{"package counter unchanged for seconds: stuck",
		{.kind = DOMAIN_PACKAGE, .max_power_w = 2000, .energy_range_uj = INTEL, .update_period_ns = MS},
		{{1000, J, true}, {4000, J}}, (double)NAN, 0, 0},
	{"graphics counter unchanged: 0 J, because the GPU may be off",
		{.kind = DOMAIN_UNCORE, .max_power_w = 1000, .energy_range_uj = INTEL, .update_period_ns = MS},
		{{1000, J, true}, {4000, J}}, 0, 0, 1},
	// clang-format on
};

static void set(int64_t values[DEVICE_COUNT], enum device_metric metric, int64_t value)
{
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		values[i] = MISSING;
	values[metric] = value;
}

// As in lib/meter.c: mark 0 is the start, mark 1 the latest reading.
static void feed(struct energy_track *track, int64_t t_ns, const int64_t *values)
{
	energy_track_feed(track, t_ns, values, false);
	energy_track_mark(track, 1, t_ns);
}

static struct energy_amount amount_of(struct energy_track *track)
{
	if (track->domain->has_energy && energy_track_is_lost(track, 0))
		return (struct energy_amount){(double)NAN, (double)NAN, (double)NAN};
	return energy_track_between(track, 0, 1);
}

static void check(void **state)
{
	const struct row *row = *state;
	struct domain description = row->domain;
	struct energy_track domain;
	description.has_energy = true;
	energy_track_init(&domain, &description, "perf", false);
	for (size_t i = 0; i < ARRAY_SIZE(row->readings) && row->readings[i].t_ms > 0; i++) {
		const struct reading *reading = &row->readings[i];
		int64_t values[DEVICE_COUNT];
		set(values, DEVICE_ENERGY_RAW, reading->raw_uj);
		feed(&domain, reading->t_ms * MS, values);
		if (reading->starts)
			energy_track_mark(&domain, 0, reading->t_ms * MS);
	}
	struct energy_amount amount = amount_of(&domain);
	assert_int_equal(isnan(amount.j), isnan(row->energy_j));
	assert_int_equal(isnan(amount.error_j), isnan(row->energy_j));
	if (isnan(row->energy_j))
		return;
	if (!(fabs(amount.j - row->energy_j) < 1e-6 * fmax(row->energy_j, 1)) ||
		!(amount.error_j >= row->min_error_j - 1e-9) || !(amount.error_j <= row->max_error_j + 1e-9))
		fail_msg("%.9g +- %.9g J is not %g +- %g to %g J", amount.j, amount.error_j, row->energy_j,
			row->min_error_j, row->max_error_j);
}

// The model reports the mean power since the previous reading: each interval has its own.
static void a_model(void **state)
{
	const struct domain description = {.kind = DOMAIN_PACKAGE,
		.provenance = PROVENANCE_ESTIMATED,
		.relative_error = 0.65};
	struct energy_track domain;
	int64_t values[DEVICE_COUNT];
	set(values, DEVICE_POWER, MISSING);
	energy_track_init(&domain, &description, "perf", false);
	feed(&domain, 1000 * MS, values);
	energy_track_mark(&domain, 0, 1000 * MS);
	values[DEVICE_POWER] = 20000;
	feed(&domain, 2000 * MS, values);
	values[DEVICE_POWER] = 50000;
	feed(&domain, 2500 * MS, values);
	struct energy_amount amount = amount_of(&domain);
	assert_true(fabs(amount.j - 45) < 1e-9);
	assert_true(fabs(amount.error_j - 0.65 * 45) < 1e-9);
	values[DEVICE_POWER] = VALUE_MISSING;
	feed(&domain, 3000 * MS, values);
	assert_true(isnan(amount_of(&domain).j));
}

static void a_power_reading(void **state)
{
	const struct domain description = {.kind = DOMAIN_GPU};
	struct energy_track domain;
	int64_t values[DEVICE_COUNT];
	set(values, DEVICE_POWER, 100000);
	energy_track_init(&domain, &description, "perf", false);
	energy_track_mark(&domain, 0, 1000 * MS);
	feed(&domain, 2000 * MS, values);
	assert_true(isnan(amount_of(&domain).j));
}

static const struct sensor_calibration calibration = {.gain = 1.25, .error = 0.02};

static const struct calibration_row {
	const char *teaches;
	struct domain domain;
	double energy_j, calibration_error_j; // NaN: not stated
} calibration_rows[] = {
	{"uncalibrated GPU: error of 10 % beside the reading error",
		{.kind = DOMAIN_GPU, .has_energy = true, .max_power_w = 700}, 600, 60},
	{"calibrated GPU: its factor and its error",
		{.kind = DOMAIN_GPU, .has_energy = true, .max_power_w = 700, .calibration = &calibration}, 750,
		15},
	{"package: never calibrated", {.kind = DOMAIN_PACKAGE, .has_energy = true, .max_power_w = 2000}, 600,
		(double)NAN},
};

static void calibrates(void **state)
{
	const struct calibration_row *row = *state;
	struct energy_track domain;
	int64_t values[DEVICE_COUNT];
	set(values, DEVICE_ENERGY_RAW, 5 * J);
	energy_track_init(&domain, &row->domain, "perf", false);
	feed(&domain, 1000 * MS, values);
	energy_track_mark(&domain, 0, 1000 * MS);
	values[DEVICE_ENERGY_RAW] = 605 * J;
	feed(&domain, 3000 * MS, values);
	struct energy_amount amount = amount_of(&domain);
	assert_float_equal(amount.j, row->energy_j, 1e-6);
	assert_int_equal(isnan(amount.calibration_error_j), isnan(row->calibration_error_j));
	if (!isnan(row->calibration_error_j))
		assert_true(fabs(amount.calibration_error_j - row->calibration_error_j) < 1e-6);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, calibration_rows, calibrates);
	ROWS_ADD_ONE(&tests, "power model: energy is added interval by interval; without a load it is unknown",
		a_model);
	ROWS_ADD_ONE(&tests, "power read only at both ends: energy unknown", a_power_reading);
	return rows_run(&tests, "track_readings");
}
