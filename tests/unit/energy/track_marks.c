#include "energy/track.h"

#include "base/util.h"
#include "rows.h"

static const int64_t MS = NS_PER_MS;

/* A device with one power before a change and another after it; its counter is updated once a period and read more
 * often. */
static const struct row {
	const char *teaches;
	double before_w, after_w;
	int64_t change_ms;
	int64_t period_us, look_us;
	uint64_t range_uj, start_uj;
	bool has_no_energy, tells_time;
	int64_t from_ms, to_ms; // of the marks
	double energy_j;        // NaN: unknown
	double max_error_j, max_off_j;
} rows[] = {
	// clang-format off
	{"constant power: exact to the readings around the updates, far better than a period",
		200, 200, 0, 100000, 2000, 0, 5000, false, false, 533, 2077, 308.8, 10.5, 0.3},
	{"package counter that changes at every reading",
		100, 100, 0, 1000, 2000, 0, 0, false, false, 533, 2077, 154.4, 0.5, 0.2},
	{"hardware reports the update time: exact",
		200, 200, 0, 100000, 2000, 0, 0, false, true, 533, 2077, 308.8, 10.5, 0.01},
	{"power changes in the update interval of a mark: spread over it",
		100, 300, 1050, 100000, 2000, 0, 0, false, false, 450, 1650, 240, 19, 6},
	{"counter wraps between two marks",
		200, 200, 0, 20000, 2000, 262143328850, 262143328850 - 100 * 1000000, false, false, 300, 1300, 200, 0.6, 0.3},
	{"power readings only: integrated",
		150, 150, 0, 20000, 5000, 0, 0, true, false, 300, 1300, 150, 0.01, 0.1},
	{"mark before the first update: uses the reading before it",
		200, 200, 0, 100000, 2000, 0, 0, false, false, 40, 1300, 252, 15, 10},
	{"marks before any update: unknown",
		200, 200, 0, 1000000, 2000, 0, 0, false, false, 1300, 2990, (double)NAN, 0, 0},
	// clang-format on
};

static double energy_uj(const struct row *row, int64_t t_us)
{
	double before_us = fmin((double)t_us, (double)row->change_ms * 1000);
	return before_us * row->before_w + ((double)t_us - before_us) * row->after_w;
}

static void read_device(const struct row *row, int64_t t_us, int64_t ret_row[DEVICE_COUNT])
{
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		ret_row[i] = VALUE_MISSING;
	int64_t update_us = t_us - t_us % row->period_us;
	if (row->has_no_energy) {
		ret_row[DEVICE_POWER] = (int64_t)((t_us < row->change_ms * 1000 ? row->before_w : row->after_w) * 1000);
		return;
	}
	uint64_t raw_uj = row->start_uj + (uint64_t)energy_uj(row, update_us);
	ret_row[DEVICE_ENERGY_RAW] = (int64_t)(row->range_uj > 0 && raw_uj > row->range_uj ? raw_uj - row->range_uj - 1
										       : raw_uj);
	if (row->tells_time)
		ret_row[DEVICE_ENERGY_TIME] = NS_PER_S + update_us * 1000;
}

static bool mark_if_due(struct energy_track *trace, size_t mark, int64_t mark_ms, int64_t t_us, int64_t look_us)
{
	bool is_due = t_us < mark_ms * 1000 && t_us + look_us >= mark_ms * 1000;
	if (is_due)
		energy_track_mark(trace, mark, NS_PER_S + mark_ms * MS);
	return is_due;
}

static void check(void **state)
{
	const struct row *row = *state;
	const struct domain domain = {.kind = DOMAIN_GPU,
		.has_energy = !row->has_no_energy,
		.max_power_w = 1000,
		.energy_range_uj = row->range_uj};
	struct energy_track trace;
	energy_track_init(&trace, &domain, "nvml", false);
	for (int64_t t_us = 0; t_us < 3000000; t_us += row->look_us) {
		int64_t values[DEVICE_COUNT];
		read_device(row, t_us, values);
		energy_track_feed(&trace, NS_PER_S + t_us * 1000, values, false);
		mark_if_due(&trace, 0, row->from_ms, t_us, row->look_us);
		mark_if_due(&trace, 1, row->to_ms, t_us, row->look_us);
	}
	assert_int_equal(energy_track_losses(&trace), 0);
	bool is_known = energy_track_has_passed(&trace, 0) && energy_track_has_passed(&trace, 1);
	assert_int_equal(is_known, !isnan(row->energy_j));
	if (isnan(row->energy_j))
		return;
	struct energy_amount amount = energy_track_between(&trace, 0, 1);
	double energy_j = amount.j, error_j = amount.error_j;
	if (fabs(energy_j - row->energy_j) > row->max_off_j)
		fail_msg("%g J, expected %g", energy_j, row->energy_j);
	if (error_j > row->max_error_j)
		fail_msg("an error of %g J, at most %g expected", error_j, row->max_error_j);
}

static void trace_lost(void **state)
{
	const struct domain domain = {.kind = DOMAIN_GPU, .has_energy = true, .max_power_w = 1000};
	struct energy_track trace;
	energy_track_init(&trace, &domain, "nvml", false);
	int64_t values[DEVICE_COUNT];
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		values[i] = VALUE_MISSING;
	static const int64_t raws[] = {500000000, 500200000, VALUE_MISSING, 500400000};
	for (size_t i = 0; i < ARRAY_SIZE(raws); i++) {
		values[DEVICE_ENERGY_RAW] = raws[i];
		energy_track_feed(&trace, NS_PER_S + (int64_t)i * MS, values, false);
	}
	assert_int_equal(energy_track_losses(&trace), 0); // one failed reading
	assert_int_equal(trace.n_updates, 2);
	values[DEVICE_ENERGY_RAW] = 7;
	energy_track_feed(&trace, NS_PER_S + 10 * MS, values, false);
	assert_int_equal(energy_track_losses(&trace), 1); // the driver was reloaded
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "a failed reading loses no energy; a counter that restarts does", trace_lost);
	return rows_run(&tests, "track_marks");
}
