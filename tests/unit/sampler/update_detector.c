/* Detection of a counter's update times from readings: a simulated counter with known period, phase and jitter. */
#include "energy/counter.h"

#include "base/util.h"
#include "rows.h"

static const struct row {
	const char *teaches;
	int64_t period_us, jitter_us; // updates come at n * period +- jitter
	int64_t look_us, late_us;     // readings at n * look, up to late_us late
	int64_t step_uj;              // increase of the true energy at each update
	int64_t quantum_uj;           // displayed values are truncated to this
	int64_t for_ms;
	bool known;
	int64_t min_us, max_us; // the reported period
	int64_t jitter_max_us;
} rows[] = {
	{"GPU updates every 100 ms, read every 5 ms", 100000, 0, 5000, 0, 5000000, 1, 1000, true, 99000, 101000, 5000},
	{"updates every 20 ms, read every millisecond", 20000, 0, 1000, 0, 100000, 1, 300, true, 19900, 20100, 1000},
	{"jitter is reported as jitter", 20000, 3000, 1000, 0, 100000, 1, 2000, true, 18000, 22000, 7000},
	{"occasionally late readings: all together are more precise than each", 20000, 0, 1000, 900, 100000, 1, 500,
		true, 19800, 20200, 2000},
	{"ticks slower than the counter: period unknown", 20000, 0, 100000, 0, 100000, 1, 3000, false},
	{"ticks as far apart as updates: period unknown", 100000, 0, 100000, 0, 5000000, 1, 3000, false},
	{"counter that never changes: period unknown", 20000, 0, 1000, 0, 0, 1, 1000, false},
	{"slow counter: normal ticks are enough to find its period", 1000000, 0, 100000, 0, 40000000, 1, 8000, true,
		900000, 1100000, 100000},
	{"counter changes at every reading: period is at most the reading interval", 1000, 0, 1100, 0, 5000, 1, 100,
		true, 1100, 1100, 0},
	{"every tick shows a change: updates in between may have been missed, period unknown", 1000, 0, 10000, 0, 5000,
		1, 1000, false},
	{"steps of whole joules at 5 W: the observed period is the time of one joule", 100000, 0, 5000, 0, 500000,
		1000000, 3000, true, 190000, 210000, 10000},
};

static uint64_t shown_uj(const struct row *row, int64_t t_us)
{
	int64_t n = t_us / row->period_us;
	// Each update has its own time: early or late by a deterministic, irregular amount.
	int64_t at_us = n * row->period_us + (row->jitter_us > 0 ? (n * 7919) % (2 * row->jitter_us) : 0);
	int64_t updates = t_us >= at_us ? n : n - 1;
	int64_t energy_uj = 1000000 + updates * row->step_uj;
	return (uint64_t)(energy_uj - energy_uj % row->quantum_uj);
}

static void check(void **state)
{
	const struct row *row = *state;
	struct update_detector watch;
	int64_t period_ns = 0, jitter_ns = 0;
	update_detector_init(&watch);
	for (int64_t i = 0; i * row->look_us < row->for_ms * 1000; i++) {
		int64_t t_us = 50000000 + i * row->look_us + (row->late_us > 0 ? (i * 613) % row->late_us : 0);
		update_detector_feed(&watch, t_us * 1000, shown_uj(row, t_us));
	}
	assert_int_equal(update_detector_period(&watch, &period_ns, &jitter_ns), row->known);
	if (!row->known)
		return;
	assert_in_range(period_ns, row->min_us * 1000, row->max_us * 1000);
	assert_in_range(jitter_ns, 0, row->jitter_max_us * 1000);
}

static const struct spread {
	const char *teaches;
	int64_t edges_us[6]; // each known to a microsecond
	int64_t period_us, jitter_us;
} spreads[] = {
	{"spread of 18 to 22 ms: 20 ms ± 2 ms", {100, 20100, 38100, 60100, 80100, 100100}, 20000, 2000},
	{"update without an increase: no jitter", {100, 20100, 40100, 80100, 100100, 120100}, 20000, 0},
	{"late update: jitter", {100, 20100, 40100, 73100, 93100, 113100}, 20000, 6500},
};

static void check_spread(void **state)
{
	const struct spread *row = *state;
	struct update_detector watch;
	int64_t period_ns, jitter_ns;
	update_detector_init(&watch);
	for (size_t i = 0; i < ARRAY_SIZE(row->edges_us); i++) {
		int64_t from_us = i > 0 ? row->edges_us[i - 1] : 0;
		for (int64_t t_us = from_us + 1; t_us < row->edges_us[i]; t_us += 1000)
			update_detector_feed(&watch, t_us * 1000, i);
		update_detector_feed(&watch, (row->edges_us[i] - 1) * 1000, i);
		update_detector_feed(&watch, row->edges_us[i] * 1000, i + 1);
	}
	assert_true(update_detector_period(&watch, &period_ns, &jitter_ns));
	assert_int_equal(period_ns, row->period_us * 1000);
	assert_int_equal(jitter_ns, row->jitter_us * 1000);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, spreads, check_spread);
	return rows_run(&tests, "edges");
}
