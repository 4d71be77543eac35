#include "energy/track.h"

#include "base/util.h"
#include "rows.h"

static const int64_t MISSING = VALUE_MISSING;

struct step {
	int64_t t_ms, energy_mj, power_mw, energy_t_ms; // energy_t_ms 0: the counter has no timestamp
	double power_w;                                 // NaN: unknown
	int64_t total_mj;
};

static const struct row {
	const char *teaches;
	bool has_energy;
	int64_t period_ms;
	struct step steps[8]; // up to the first with t_ms 0
	int64_t interval_s;   // 0: not stated
	double gain;          // of a calibrated GPU; 0: not calibrated
} rows[] = {
	// clang-format off
	{"counter: power is its increase over the time between two readings", true, 1, {
		{1000, 5000, 0, 0, NAN, 0},
		{2000, 15000, 0, 0, 10, 10000},
		{2500, 35000, 0, 0, 40, 30000},
	}},
	{"slow counter: the last power is kept until the counter changes", true, 1000, {
		{1000, 0, 0, 0, NAN, 0},
		{1100, 0, 0, 0, NAN, 0},
		{2000, 10000, 0, 0, 10 / 1.05, 10000},
		{2100, 10000, 0, 0, 10 / 1.05, 10000},
		{2900, 10000, 0, 0, 10 / 1.05, 10000},
		{3000, 30000, 0, 0, 30 / 2.45, 30000}, // over ten of its updates, where there are that many
	}},
	{"counter with timestamps: power between its own updates", true, 100, {
		{1000, 1000, 0, 980, NAN, 0},
		{2000, 21000, 0, 1980, 20, 20000},
		{3000, 39000, 0, 2880, 20, 38000},
	}},
	{"counter unchanged for long: it measures no power", true, 1, {
		{1000, 1000, 0, 0, NAN, 0},
		{1100, 2000, 0, 0, 10, 1000},
		{1300, 2000, 0, 0, 10, 1000},
		{1500, 2000, 0, 0, 0, 1000},
	}},
	{"counter that never changed: power is unknown at first, then not measured", true, 0, {
		{1000, 7, 0, 0, NAN, 0},
		{2000, 7, 0, 0, NAN, 0},
		{4000, 7, 0, 0, 0, 0},
	}},
	{"counter unreadable: the power reading is used instead", true, 1, {
		{1000, 1000, 9000, 0, NAN, 0},
		{2000, 11000, 9000, 0, 10, 10000},
		{3000, -1, 9000, 0, 9, 10000},
		{4000, 31000, 9000, 0, 10, 30000},
	}},
	{"counter restarted: energy in between is unknown", true, 1, {
		{1000, 900000000, 0, 0, NAN, 0},
		{2000, 900010000, 0, 0, 10, 10000},
		{3000, 3000, 0, 0, NAN, 10000},
		{4000, 13000, 0, 0, 10, 20000},
	}},
	{"power only: trapezoidal rule", false, 0, {
		{1000, -1, 10000, 0, 10, 0},
		{2000, -1, 20000, 0, 20, 15000},
		{3000, -1, 20000, 0, 20, 35000},
	}},
	{"power only: a first value that needs two readings covers the time between them", false, 0, {
		{1000, -1, -1, 0, NAN, 0},
		{2000, -1, 10000, 0, 10, 10000},
		{3000, -1, 20000, 0, 20, 25000},
	}},
	{"power only: a failed reading is bridged, as in reports", false, 0, {
		{1000, -1, 10000, 0, 10, 0},
		{2000, -1, -1, 0, NAN, 0},
		{3000, -1, 20000, 0, 20, 30000},
		{4000, -1, 20000, 0, 20, 50000},
	}},
	{"power only: a long suspend is not measured", false, 0, {
		{1000, -1, 10000, 0, 10, 0},
		{100000, -1, 10000, 0, 10, 0},
		{101000, -1, 10000, 0, 10, 10000},
	}},
	{"power only: sampling once an hour integrates all energy", false, 0, {
		{1000, -1, 10000, 0, 10, 0},
		{3601000, -1, 10000, 0, 10, 36000000},
		{7301000, -1, 20000, 0, 20, 91500000},
		{27301000, -1, 20000, 0, 20, 91500000}, // suspended for long
	}, 3600},
	{"power only: frequent sampling treats a gap of a minute as not measured", false, 0, {
		{1000, -1, 10000, 0, 10, 0},
		{60000, -1, 10000, 0, 10, 590000},
	}, 1},
	{"counter of a calibrated GPU: energy and power are corrected by the factor", true, 1, {
		{1000, 5000, 0, 0, NAN, 0},
		{2000, 15000, 0, 0, 12.5, 12500},
		{2500, 35000, 0, 0, 50, 37500},
	}, 0, 1.25},
	{"power of a calibrated GPU: corrected by the factor", false, 0, {
		{1000, -1, 100000, 0, 125, 0},
		{2000, -1, 100000, 0, 125, 125000},
	}, 0, 1.25},
	// clang-format on
};

static void take_step(struct energy_track *meter, const struct step *step)
{
	int64_t row[DEVICE_COUNT];
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		row[m] = MISSING;
	row[DEVICE_ENERGY_RAW] = step->energy_mj >= 0 ? step->energy_mj * 1000 : MISSING;
	row[DEVICE_POWER] = step->power_mw >= 0 ? step->power_mw : MISSING;
	row[DEVICE_ENERGY_TIME] = step->energy_t_ms > 0 ? step->energy_t_ms * NS_PER_MS : MISSING;
	energy_track_feed(meter, step->t_ms * NS_PER_MS, row, false);
	double power_w = energy_track_power_w(meter);
	if (isnan(step->power_w) ? !isnan(power_w) : !(fabs(power_w - step->power_w) < 1e-6))
		fail_msg("at %lld ms: %g W is not %g W", (long long)step->t_ms, power_w, step->power_w);
	if (llabs(meter->energy_uj - step->total_mj * 1000) > 1)
		fail_msg("at %lld ms: %lld uJ is not %lld mJ", (long long)step->t_ms, (long long)meter->energy_uj,
			(long long)step->total_mj);
}

static void check(void **state)
{
	const struct row *row = *state;
	const struct sensor_calibration calibration = {.gain = row->gain};
	const struct domain domain = {.has_energy = row->has_energy,
		.update_period_ns = row->period_ms * NS_PER_MS,
		.max_power_w = 1000,
		.calibration = &calibration};
	struct energy_track meter;
	energy_track_init(&meter, &domain, "perf", false);
	if (row->interval_s > 0)
		energy_track_set_join(&meter, row->interval_s * NS_PER_S * 5 / 2);
	for (size_t i = 0; i < ARRAY_SIZE(row->steps) && row->steps[i].t_ms > 0; i++)
		take_step(&meter, &row->steps[i]);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "track_power");
}
