/* Check of the test tool itself: the fake's energy counter against the integral of its power. */
#include "sensor/sensor.h"

#include "nvml_fixture.h"

static const struct integral_row {
	const char *teaches, *power;
	unsigned int limit_mw; // set at 1 s
	double expected_j;     // computed by hand, over 0..4 s; NaN: compared with the integral only
} integral_rows[] = {
	{"constant: power times time", "constant 250000", 400000, 1000},
	{"constant: reduced by a limit", "constant 250000", 150000, 250 + 3 * 150},
	{"step: high for a quarter of each second", "step 100000 300000 1000 25", 400000, 4 * 150},
	{"step: the high part reduced by a limit", "step 100000 300000 1000 25", 200000, 150 + 3 * 125},
	{"sine: whole periods equal the mean", "sine 200000 100000 500", 400000, 800},
	{"sine: limited above the mean", "sine 200000 100000 700", 250000, NAN},
	{"sine: limited at the mean", "sine 200000 100000 500", 200000, 200 + 3 * (200 - 100 / M_PI)},
	{"sine: limited below the mean", "sine 200000 100000 700", 130000, NAN},
	{"sine: limited below all of it", "sine 250000 100000 500", 120000, 250 + 3 * 120},
};

// Midpoint sum of the power reading, 1 ms at a time.
static double sum_power_j(struct nvml_fixture *f)
{
	double sum_mj = 0;
	for (int64_t t_ms = 0; t_ms < 4000; t_ms++) {
		fixture_read(f, t_ms);
		sum_mj += (double)f->rows[0][DEVICE_POWER] * 1e-3;
	}
	return sum_mj * 1e-3;
}

static void check_integral(void **state)
{
	const struct integral_row *row = *state;
	struct nvml_fixture f;
	char cards[256];
	snprintf(cards, sizeof(cards), "epoch_ns 1000000000\ngpu\nlimits_mw 100000 400000 400000 400000\npower_mw %s\n",
		row->power);
	fixture_init(&f, MODERN, cards);
	FILE *limits = fopen(f.limits, "we");
	assert_non_null(limits);
	fprintf(limits, "2000000000 0 %u 1\n", row->limit_mw);
	fclose(limits);
	assert_int_equal(fixture_try_open(&f), 0);
	fixture_read(&f, 0);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 0);
	fixture_read(&f, 4000);
	double counter_j = (double)f.rows[0][DEVICE_ENERGY_RAW] * 1e-6;
	if (!isnan(row->expected_j))
		assert_true(fabs(counter_j - row->expected_j) < 0.002);
	// after the limit's time power is limited, before it was not: 0.1 % for the edges of the steps
	double summed_j = sum_power_j(&f);
	if (fabs(counter_j - summed_j) > counter_j * 1e-3)
		fail_msg("the counter says %.3f J, the power sums to %.3f J", counter_j, summed_j);
	fixture_close(&f);
}

static void steps_at_its_period(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\npower_mw constant 100000\nenergy_period_ms 100\nenergy_reset_ms 1000\n");
	fixture_read(&f, 199);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 10000000);
	fixture_read(&f, 200);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 20000000);
	fixture_read(&f, 1250);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 20000000);
	fixture_close(&f);
}

static void sets_a_limit_within_its_range(void **state)
{
	struct nvml_fixture f;
	int (*set)(void *, unsigned int);
	int (*by_index)(unsigned int, void **);
	void *card;
	fixture_open(&f, MODERN, "gpu\nlimits_mw 100000 400000 400000 400000\n");
	void *set_address = fixture_symbol(&f, "nvmlDeviceSetPowerManagementLimit");
	void *index_address = fixture_symbol(&f, "nvmlDeviceGetHandleByIndex_v2");
	memcpy(&set, &set_address, sizeof(set));
	memcpy(&by_index, &index_address, sizeof(by_index));
	assert_int_equal(by_index(0, &card), 0);
	assert_int_equal(set(card, 99999), 2);
	assert_int_equal(set(card, 400001), 2);
	assert_int_equal(set(card, 150000), 0);
	fixture_read(&f, 10);
	assert_int_equal(f.rows[0][DEVICE_POWER_CAP], 150000);
	assert_int_equal(access(f.limits, F_OK), 0);
	fixture_close(&f);
}

static void moves_while_it_runs(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\ntemperature_c 40\n");
	fixture_read(&f, 0);
	assert_int_equal(f.rows[0][DEVICE_TEMPERATURE], 40);
	fixture_write(&f, "gpu\ntemperature_c 90\n");
	fixture_read(&f, 100);
	assert_int_equal(f.rows[0][DEVICE_TEMPERATURE], 90);
	fixture_close(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, integral_rows, check_integral);
	ROWS_ADD_ONE(&tests, "counter: updated at its period, can be reset", steps_at_its_period);
	ROWS_ADD_ONE(&tests, "limit: checked against its range and stored", sets_a_limit_within_its_range);
	ROWS_ADD_ONE(&tests, "changed file: read again", moves_while_it_runs);
	return rows_run(&tests, "nvml_fake");
}
