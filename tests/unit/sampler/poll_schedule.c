/* Extra readings between ticks: a simulated counter of known period, a simulated clock, and the times of the
 * readings. */
#include "sampler/sampler.h"

#include "base/util.h"
#include "rows.h"

struct stage {
	struct domain domain;
	const struct domain *devices[1];
	struct update_period seen;
	struct sensor_set sensors;
	struct update_detector watch;
	struct sampler sampler;
	struct poll_schedule schedule;
	int64_t period_us; // of the counter's updates; 0: it never changes
};

static void stage_open(struct stage *stage, int64_t period_us, int64_t known_us, int64_t interval_ms)
{
	*stage = (struct stage){
		.domain = {.has_energy = true},
		.seen = {known_us * 1000, 0},
		.period_us = period_us,
	};
	update_detector_init(&stage->watch);
	stage->devices[0] = &stage->domain;
	stage->sensors = (struct sensor_set){.devices = stage->devices, .n_devices = 1};
	stage->sampler = (struct sampler){.sensors = &stage->sensors,
		.detectors = &stage->watch,
		.periods = &stage->seen,
		.options.interval_ns = interval_ms * NS_PER_MS};
}

static void look(struct stage *stage, int64_t t_ns)
{
	uint64_t raw = stage->period_us > 0 ? (uint64_t)(t_ns / (stage->period_us * 1000)) : 7;
	int64_t period_ns, jitter_ns;
	if (update_detector_feed(&stage->watch, t_ns, raw) &&
		update_detector_period(&stage->watch, &period_ns, &jitter_ns))
		stage->seen.period_ns = period_ns;
}

static const struct row {
	const char *teaches;
	int64_t period_us, known_us, interval_ms;
	int64_t looks_min, looks_max; // in the first ten seconds
	int64_t later_min, later_max; // in the minute after that
	bool period_found;
} rows[] = {
	{"20 ms, unknown: readings every millisecond until five updates were seen, then two short rounds a minute",
		20000, 0, 100, 80, 130, 80, 140, true},
	{"100 ms, unknown", 100000, 0, 100, 100, 500, 80, 160, true},
	{"100 ms, known: one reading each twentieth of the period", 100000, 100000, 100, 80, 110, 80, 140, true},
	{"one second: no more readings than needed", 1000000, 0, 100, 80, 700, 0, 700, false},
	{"a millisecond: no extra readings", 1000, 1000, 100, 0, 0, 0, 0, false},
	{"ticks as frequent as extra readings: one round detects it", 20000, 20000, 1, 0, 0, 0, 2, false},
	{"counter that never changes: extra readings stop soon", 0, 0, 100, 60, 300, 0, 600, false},
};

static int64_t count_looks(struct stage *stage, int64_t from_ns, int64_t to_ns)
{
	int64_t polls = 0;
	for (int64_t t_ns = from_ns; t_ns < to_ns;) {
		int64_t next_ns = poll_schedule_next_ns(&stage->schedule, t_ns);
		if (!value_ok(next_ns) || next_ns >= to_ns)
			return polls;
		assert_true(next_ns > t_ns); // an alarm in the past would spin
		t_ns = next_ns;
		look(stage, t_ns);
		polls++;
	}
	return polls;
}

static void check(void **state)
{
	const struct row *row = *state;
	struct stage stage;
	const int64_t start_ns = 1000 * NS_PER_S + 1234567, later_ns = start_ns + 10 * NS_PER_S;
	stage_open(&stage, row->period_us, row->known_us, row->interval_ms);
	look(&stage, start_ns);
	assert_int_equal(poll_schedule_open(&stage.schedule, &stage.sampler, start_ns), 0);
	assert_in_range(count_looks(&stage, start_ns, later_ns), row->looks_min, row->looks_max);
	if (row->period_found)
		assert_in_range(stage.seen.period_ns, row->period_us * 950, row->period_us * 1050);
	assert_in_range(count_looks(&stage, later_ns, later_ns + 60 * NS_PER_S), row->later_min, row->later_max);
	poll_schedule_close(&stage.schedule);
}

/* ---- after the end ---- */

static const struct end {
	const char *teaches;
	int64_t period_us, known_us, run_ms;
	int64_t waited_min_us, waited_max_us;
} ends[] = {
	{"end of run: the next update of a 100 ms counter is waited for", 100000, 100000, 5000, 30000, 101000},
	{"end of a run of a quarter period: waits too", 100000, 100000, 30, 30000, 101000},
	{"end of a run too short to resolve blocks: no wait", 100000, 100000, 2, 0, 0},
	{"end of run, fast counter: no wait", 1000, 1000, 5000, 0, 0},
	{"end of run, counter of one second: no wait", 1000000, 1000000, 5000, 1000, 171000},
	{"end of run, stopped counter: waits half a period more", 0, 20000, 5000, 25000, 31000},
};

static void check_end(void **state)
{
	const struct end *row = *state;
	struct stage stage;
	const int64_t end_ns = 2000 * NS_PER_S + 37 * NS_PER_MS, start_ns = end_ns - row->run_ms * NS_PER_MS;
	stage_open(&stage, row->period_us, row->known_us, 100);
	look(&stage, start_ns - 5 * row->known_us * 1000);
	stage.watch.n_edges++; // it has changed before
	look(&stage, end_ns);
	assert_int_equal(poll_schedule_open(&stage.schedule, &stage.sampler, start_ns), 0);
	poll_schedule_finish(&stage.schedule, start_ns, end_ns);
	int64_t t_ns = end_ns;
	for (int64_t next_ns; value_ok(next_ns = poll_schedule_last_ns(&stage.schedule, t_ns)); look(&stage, t_ns)) {
		assert_true(next_ns > t_ns);
		t_ns = next_ns;
	}
	assert_in_range(t_ns - end_ns, row->waited_min_us * 1000, row->waited_max_us * 1000);
	poll_schedule_close(&stage.schedule);
}

/* ---- wraps ---- */

static const struct wrap {
	const char *teaches;
	double range_j, max_power_w;
	int64_t interval_s;
	int64_t looks_min, looks_max; // in ten minutes
} wraps[] = {
	{"262 kJ range: ticks are enough, it wraps in two minutes at 2 kW", 262143, 2000, 1, 0, 0},
	{"samples an hour apart: a reading every 33 s", 262143, 2000, 3600, 17, 20},
	{"AMD's range of 65 kJ: a reading every 8 s", 65532, 2000, 60, 70, 75},
	{"counter that never wraps: no extra readings", 0, 2000, 3600, 0, 0},
	{"tiny range: at most five readings a second", 0.001, 2000, 3600, 2900, 3001},
};

static void check_wrap(void **state)
{
	const struct wrap *row = *state;
	struct stage stage;
	const int64_t start_ns = 3000 * NS_PER_S;
	stage_open(&stage, 1000, 1000, row->interval_s * 1000);
	stage.domain.energy_range_uj = (uint64_t)(row->range_j * 1e6);
	stage.domain.max_power_w = row->max_power_w;
	look(&stage, start_ns);
	assert_int_equal(poll_schedule_open(&stage.schedule, &stage.sampler, start_ns), 0);
	assert_in_range(count_looks(&stage, start_ns, start_ns + 600 * NS_PER_S), row->looks_min, row->looks_max);
	poll_schedule_close(&stage.schedule);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, ends, check_end);
	ROWS_ADD(&tests, wraps, check_wrap);
	return rows_run(&tests, "probe");
}
