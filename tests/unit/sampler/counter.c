#include "energy/counter.h"

#include "base/util.h"
#include "rows.h"

#define M INT64_C(1000000) // µJ in a joule
static const int64_t MISSING = VALUE_MISSING;
static const uint64_t INTEL = 262143328850; // µJ: 32 bits of 61.035 µJ; at 100 W a wrap every 44 minutes

struct step {
	int64_t t_us, raw_uj;
	bool suspended;
	enum counter_event event;
	uint64_t total_uj;
};

static const struct row {
	const char *teaches;
	uint64_t range;
	double max_power_w;
	struct step steps[8]; // up to the first with t_us 0 after the first
	uint32_t wraps, resets, gaps, ambiguous;
} rows[] = {
	// clang-format off
	{"first value: start of counting, no energy", INTEL, 2000, {
		{1000000, 5000 * M, false, COUNTER_FIRST, 0},
		{1100000, 5010 * M, false, COUNTER_OK, 10 * M},
		{1200000, 5021 * M, false, COUNTER_OK, 21 * M},
	}},
	{"unchanged value: a stall, no energy", INTEL, 2000, {
		{1000000, 7, false, COUNTER_FIRST, 0},
		{1000050, 7, false, COUNTER_STALLED, 0},
		{1100000, 7, false, COUNTER_STALLED, 0},
	}},
	{"0 is a valid value", INTEL, 2000, {
		{1000000, 0, false, COUNTER_FIRST, 0},
		{1100000, 0, false, COUNTER_STALLED, 0},
		{1200000, 3 * M, false, COUNTER_OK, 3 * M},
	}},

	{"wrap: the rest of the range, the 0, and the value after it", 999, 0, {
		{1000000, 990, false, COUNTER_FIRST, 0},
		{1100000, 10, false, COUNTER_WRAP, 20},
	}, .wraps = 1},
	{"wrap from the last value to 0: one count", 999, 0, {
		{1000000, 999, false, COUNTER_FIRST, 0},
		{1100000, 0, false, COUNTER_WRAP, 1},
	}, .wraps = 1},
	{"wrap of a real counter: 10 J in 0.1 s", 262143328850, 2000, {
		{1000000, 262143328850 - 4 * M, false, COUNTER_FIRST, 0},
		{1100000, 6 * M - 1, false, COUNTER_WRAP, 10 * M},
		{1200000, 16 * M - 1, false, COUNTER_OK, 20 * M},
	}, .wraps = 1},
	{"two wraps in succession, both seen", 100 * M - 1, 50, {
		{1000000, 90 * M, false, COUNTER_FIRST, 0},
		{2000000, 40 * M, false, COUNTER_WRAP, 50 * M},
		{3000000, 90 * M, false, COUNTER_OK, 100 * M},
		{4000000, 40 * M, false, COUNTER_WRAP, 150 * M},
	}, .wraps = 2},
	{"wrap between two readings 50 us apart: one tick of the counter, not a reset", INTEL, 2000, {
		{1000000, 262143328850 - 100, false, COUNTER_FIRST, 0},
		{1000050, 60 * 1000, false, COUNTER_WRAP, 60101},
	}, .wraps = 1},
	{"two readings at the same time may differ by one tick", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{1000000, 1 * M + 61, false, COUNTER_OK, 61},
	}},
	{"counter of whole joules ticks within 50 us: 20 kW, still a tick", 4294967295 * M, 5000, {
		{1000000, 100 * M, false, COUNTER_FIRST, 0},
		{1000050, 101 * M, false, COUNTER_OK, 1 * M},
	}},
	{"clock steps back: no event", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{900000, 2 * M, false, COUNTER_OK, 1 * M},
		{1000000, 3 * M, false, COUNTER_OK, 2 * M},
	}},

	{"decrease to 0 that a wrap would make 262 kJ in 0.1 s: a reset, no energy added", INTEL, 2000, {
		{1000000, 1000 * M, false, COUNTER_FIRST, 0},
		{1100000, 0, false, COUNTER_RESET, 0},
		{1200000, 5 * M, false, COUNTER_OK, 5 * M},
	}, .resets = 1},
	{"no range: a decrease is always a reset", 0, 2000, {
		{1000000, 1000 * M, false, COUNTER_FIRST, 0},
		{1100000, 3 * M, false, COUNTER_RESET, 0},
		{1200000, 4 * M, false, COUNTER_OK, 1 * M},
	}, .resets = 1},
	{"no range and no maximum: a decrease is always a reset", 0, 0, {
		{1000000, 1000 * M, false, COUNTER_FIRST, 0},
		{1100000, 1000 * M - 1, false, COUNTER_RESET, 0},
	}, .resets = 1},
	{"increase beyond any power: a reset", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{1100000, 200000 * M, false, COUNTER_RESET, 0},
		{1200000, 200001 * M, false, COUNTER_OK, 1 * M},
	}, .resets = 1},
	{"single wild value: two resets, no energy lost", INTEL, 2000, {
		{1000000, 100000 * M, false, COUNTER_FIRST, 0},
		{1100000, 200000 * M, false, COUNTER_RESET, 0},
		{1200000, 100002 * M, false, COUNTER_RESET, 0},
		{1300000, 100003 * M, false, COUNTER_OK, 1 * M},
	}, .resets = 2},
	{"decrease after a suspend: a reset, though a wrap is possible", 999, 0, {
		{1000000, 990, false, COUNTER_FIRST, 0},
		{1100000, 10, true, COUNTER_RESET, 0},
		{1200000, 15, false, COUNTER_OK, 5},
	}, .resets = 1},
	{"increase after a suspend: energy", INTEL, 2000, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{1100000, 12 * M, true, COUNTER_OK, 2 * M},
	}},
	{"small decrease after a suspend: a reset", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{1100000, 1 * M - 1, true, COUNTER_RESET, 0},
	}, .resets = 1},

	{"older value after a newer one: no event, no energy counted twice", INTEL, 2000, {
		{1000000, 100 * M, false, COUNTER_FIRST, 0},
		{1001000, 100 * M + 900, false, COUNTER_OK, 900},
		{1001050, 100 * M + 600, false, COUNTER_STALLED, 900},
		{1002000, 100 * M + 1500, false, COUNTER_OK, 1500},
	}},
	{"older value after a newer one, no range: no event", 0, 2000, {
		{1000000, 100 * M, false, COUNTER_FIRST, 0},
		{1001000, 100 * M - 500, false, COUNTER_STALLED, 0},
		{1002000, 100 * M + 500, false, COUNTER_OK, 500},
	}},
	{"decrease as near to a wrap as to a step back: a wrap", 10 * M - 1, 2000, {
		{1000000, 9 * M, false, COUNTER_FIRST, 0},
		{1001000, 8 * M, false, COUNTER_WRAP, 9 * M},
	}, .wraps = 1},

	{"unreadable values: one gap, bridged by the next valid value", INTEL, 2000, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{1100000, MISSING, false, COUNTER_GAP, 0},
		{1200000, MISSING, false, COUNTER_GAP, 0},
		{1300000, 40 * M, false, COUNTER_GAP_ENDED, 30 * M},
		{1400000, 50 * M, false, COUNTER_OK, 40 * M},
	}, .gaps = 1},
	{"gap before the first value: a gap; the first value stays the first", INTEL, 2000, {
		{1000000, MISSING, false, COUNTER_GAP, 0},
		{1100000, 40 * M, false, COUNTER_FIRST, 0},
		{1200000, 41 * M, false, COUNTER_OK, 1 * M},
	}, .gaps = 1},
	{"one wrap within a gap is counted", 999, 0, {
		{1000000, 990, false, COUNTER_FIRST, 0},
		{1100000, MISSING, false, COUNTER_GAP, 0},
		{1200000, 10, false, COUNTER_GAP_ENDED, 20},
	}, .wraps = 1, .gaps = 1},
	{"zone returns at 0: a reset", INTEL, 2000, {
		{1000000, 100000 * M, false, COUNTER_FIRST, 0},
		{1100000, MISSING, false, COUNTER_GAP, 0},
		{5000000, 200 * M, false, COUNTER_RESET, 0},
		{5100000, 210 * M, false, COUNTER_OK, 10 * M},
	}, .resets = 1, .gaps = 1},
	{"value above the range: invalid", 1000, 0, {
		{1000000, 10, false, COUNTER_FIRST, 0},
		{1100000, 5000, false, COUNTER_GAP, 0},
		{1200000, 30, false, COUNTER_GAP_ENDED, 20},
	}, .gaps = 1},
	{"last value of the range: valid", 1000, 0, {
		{1000000, 1000, false, COUNTER_FIRST, 0},
		{1100000, 1001, false, COUNTER_GAP, 0},
	}, .gaps = 1},
	{"negative value: invalid", INTEL, 2000, {
		{1000000, -5, false, COUNTER_GAP, 0},
		{1100000, 5, false, COUNTER_FIRST, 0},
	}, .gaps = 1},

	{"interval long enough for several wraps, 60 W before: two wraps are the most likely number", 100 * M - 1, 200, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{1100000, 16 * M, false, COUNTER_OK, 6 * M},
		{1200000, 22 * M, false, COUNTER_OK, 12 * M},
		{5200000, 62 * M, false, COUNTER_WRAPS, 252 * M}, // 4 s: 40 J seen, 240 J expected, 800 J possible
	}, .wraps = 2, .ambiguous = 1},
	{"interval long enough for several wraps, value decreased: two wraps", 100 * M - 1, 200, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{1100000, 16 * M, false, COUNTER_OK, 6 * M},
		{5100000, 6 * M, false, COUNTER_WRAPS, 296 * M}, // 90 J seen, 240 J expected: 290 is nearer than 190
	}, .wraps = 3, .ambiguous = 1},
	{"no more wraps than the maximum power allows", 100 * M - 1, 50, {
		{1000000, 0, false, COUNTER_FIRST, 0},
		{2000000, 90 * M, false, COUNTER_OK, 90 * M},     // 90 W once: within the tolerance
		{6000000, 10 * M, false, COUNTER_WRAPS, 210 * M}, // 120 J of 200 J possible, 360 J expected
	}, .wraps = 2, .ambiguous = 1},
	{"several wraps possible, the power before matches the visible energy: none added", 100 * M - 1, 200, {
		{1000000, 90 * M, false, COUNTER_FIRST, 0},
		{1100000, 96 * M, false, COUNTER_OK, 6 * M},
		{2100000, 55 * M, false, COUNTER_WRAP, 65 * M}, // 59 J seen, 60 J expected, 159 J possible
	}, .wraps = 1, .ambiguous = 1},
	{"power before unknown: the fewest wraps", 100 * M - 1, 200, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{5000000, 50 * M, false, COUNTER_OK, 40 * M},
	}, .ambiguous = 1},
	{"interval of an hour at 100 W", 262143328850, 2000, {
		{1000000, 0, false, COUNTER_FIRST, 0},
		{61000000, 6000 * M, false, COUNTER_OK, 6000 * M},
		{3661000000, 6000 * M + 97856671149, false, COUNTER_WRAPS, 366000 * M},
	}, .wraps = 1, .ambiguous = 1},

	{"counter stuck for a minute, then one large step: energy, no reset", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{31000000, 1 * M, false, COUNTER_STALLED, 0},
		{60900000, 1 * M, false, COUNTER_STALLED, 0},
		{61000000, 6001 * M, false, COUNTER_OK, 6000 * M},
	}},
	{"counter that updates once a second may add two seconds' energy at once", INTEL, 100, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{1010000, 101 * M, false, COUNTER_OK, 100 * M},
	}},
	// clang-format on
};

static void feed_steps(void **state)
{
	const struct row *row = *state;
	struct counter counter;
	counter_init(&counter, row->range, row->max_power_w);
	for (const struct step *step = row->steps; step < row->steps + ARRAY_SIZE(row->steps) && step->t_us > 0;
		step++) {
		enum counter_event event = counter_feed(&counter, step->t_us * 1000, step->raw_uj, step->suspended);
		assert_int_equal(event, step->event);
		assert_int_equal(counter.total, step->total_uj);
	}
	assert_int_equal(counter.wraps, row->wraps);
	assert_int_equal(counter.resets, row->resets);
	assert_int_equal(counter.gaps, row->gaps);
	assert_int_equal(counter.ambiguous, row->ambiguous);
}

// A year at 350 W, sampled every ten seconds, has about 42,000 wraps; not one microjoule may be lost.
static void year_at_350_w(void **state)
{
	const uint64_t modulus = INTEL + 1;
	struct counter counter;
	counter_init(&counter, INTEL, 2000);
	uint64_t truth_uj = 0;
	for (int64_t t_s = 1; t_s < 365 * 86400; t_s += 10, truth_uj += UINT64_C(3500) * M)
		counter_feed(&counter, t_s * NS_PER_S, (int64_t)((truth_uj + 12345) % modulus), false);
	assert_int_equal(counter.total, truth_uj - UINT64_C(3500) * M);
	assert_int_equal(counter.wraps, (truth_uj - UINT64_C(3500) * M + 12345) / modulus);
	assert_int_equal(counter.resets + counter.gaps + counter.ambiguous, 0);
}

// For any input, the total never falls and never grows faster than the maximum power.
static void any_values(void **state)
{
	uint64_t random = 88172645463325252;
	struct counter counter;
	counter_init(&counter, 1000 * M, 500);
	int64_t t_ns = 0;
	for (int i = 0; i < 200000; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		int64_t raw = random % 7 == 0 ? MISSING : (int64_t)(random % (1200 * M));
		uint64_t before = counter.total;
		int64_t last_change_ns = counter.last_change_ns;
		t_ns += (int64_t)(random % 2000) * NS_PER_MS;
		counter_feed(&counter, t_ns, raw, random % 11 == 0);
		assert_true(counter.total >= before);
		double span_s = (double)(t_ns - last_change_ns) / 1e9 + 1;
		assert_true((double)(counter.total - before) <= 500 * span_s * M + 1);
	}
	assert_true(counter.total > 0 && counter.resets > 0 && counter.gaps > 0);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, feed_steps);
	ROWS_ADD_ONE(&tests, "a year at 350 W: no energy lost", year_at_350_w);
	ROWS_ADD_ONE(&tests, "any sequence of values: a plausible total", any_values);
	return rows_run(&tests, "counter");
}
