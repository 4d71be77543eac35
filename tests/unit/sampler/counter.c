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
	{"the first value is where counting starts, not energy", INTEL, 2000, {
		{1000000, 5000 * M, false, COUNTER_FIRST, 0},
		{1100000, 5010 * M, false, COUNTER_OK, 10 * M},
		{1200000, 5021 * M, false, COUNTER_OK, 21 * M},
	}},
	{"no change is a stall and costs nothing", INTEL, 2000, {
		{1000000, 7, false, COUNTER_FIRST, 0},
		{1000050, 7, false, COUNTER_STALLED, 0},
		{1100000, 7, false, COUNTER_STALLED, 0},
	}},
	{"0 is a value like any other", INTEL, 2000, {
		{1000000, 0, false, COUNTER_FIRST, 0},
		{1100000, 0, false, COUNTER_STALLED, 0},
		{1200000, 3 * M, false, COUNTER_OK, 3 * M},
	}},

	{"a wrap: the rest of the range, the 0, and what came after", 999, 0, {
		{1000000, 990, false, COUNTER_FIRST, 0},
		{1100000, 10, false, COUNTER_WRAP, 20},
	}, .wraps = 1},
	{"from the last value to 0 is one count", 999, 0, {
		{1000000, 999, false, COUNTER_FIRST, 0},
		{1100000, 0, false, COUNTER_WRAP, 1},
	}, .wraps = 1},
	{"a wrap of a real counter: 10 J in 0.1 s", 262143328850, 2000, {
		{1000000, 262143328850 - 4 * M, false, COUNTER_FIRST, 0},
		{1100000, 6 * M - 1, false, COUNTER_WRAP, 10 * M},
		{1200000, 16 * M - 1, false, COUNTER_OK, 20 * M},
	}, .wraps = 1},
	{"two wraps, one after the other, both seen", 100 * M - 1, 50, {
		{1000000, 90 * M, false, COUNTER_FIRST, 0},
		{2000000, 40 * M, false, COUNTER_WRAP, 50 * M},
		{3000000, 90 * M, false, COUNTER_OK, 100 * M},
		{4000000, 40 * M, false, COUNTER_WRAP, 150 * M},
	}, .wraps = 2},
	{"a wrap between two readings 50 us apart is one: a tick of the counter, not a reset", INTEL, 2000, {
		{1000000, 262143328850 - 100, false, COUNTER_FIRST, 0},
		{1000050, 60 * 1000, false, COUNTER_WRAP, 60101},
	}, .wraps = 1},
	{"two readings at one instant may see one tick", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{1000000, 1 * M + 61, false, COUNTER_OK, 61},
	}},
	{"a counter of whole joules ticks once in 50 us: 20 kW, and still only a tick", 4294967295 * M, 5000, {
		{1000000, 100 * M, false, COUNTER_FIRST, 0},
		{1000050, 101 * M, false, COUNTER_OK, 1 * M},
	}},
	{"a clock that steps back is no event", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{900000, 2 * M, false, COUNTER_OK, 1 * M},
		{1000000, 3 * M, false, COUNTER_OK, 2 * M},
	}},

	{"back to 0 where a wrap would mean 262 kJ in 0.1 s: a reset, nothing is invented", INTEL, 2000, {
		{1000000, 1000 * M, false, COUNTER_FIRST, 0},
		{1100000, 0, false, COUNTER_RESET, 0},
		{1200000, 5 * M, false, COUNTER_OK, 5 * M},
	}, .resets = 1},
	{"without a range a decrease is always a reset", 0, 2000, {
		{1000000, 1000 * M, false, COUNTER_FIRST, 0},
		{1100000, 3 * M, false, COUNTER_RESET, 0},
		{1200000, 4 * M, false, COUNTER_OK, 1 * M},
	}, .resets = 1},
	{"without a range and a maximum too", 0, 0, {
		{1000000, 1000 * M, false, COUNTER_FIRST, 0},
		{1100000, 1000 * M - 1, false, COUNTER_RESET, 0},
	}, .resets = 1},
	{"a jump upwards that no power explains is a reset too", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{1100000, 200000 * M, false, COUNTER_RESET, 0},
		{1200000, 200001 * M, false, COUNTER_OK, 1 * M},
	}, .resets = 1},
	{"a single wild value costs two resets and no joule", INTEL, 2000, {
		{1000000, 100000 * M, false, COUNTER_FIRST, 0},
		{1100000, 200000 * M, false, COUNTER_RESET, 0},
		{1200000, 100002 * M, false, COUNTER_RESET, 0},
		{1300000, 100003 * M, false, COUNTER_OK, 1 * M},
	}, .resets = 2},
	{"a decrease after a suspend is a reset, though it could be a wrap", 999, 0, {
		{1000000, 990, false, COUNTER_FIRST, 0},
		{1100000, 10, true, COUNTER_RESET, 0},
		{1200000, 15, false, COUNTER_OK, 5},
	}, .resets = 1},
	{"an increase after a suspend is energy", INTEL, 2000, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{1100000, 12 * M, true, COUNTER_OK, 2 * M},
	}},
	{"even a small step back after a suspend is a reset", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{1100000, 1 * M - 1, true, COUNTER_RESET, 0},
	}, .resets = 1},

	{"an older value after a newer one is no event, and nothing counts twice", INTEL, 2000, {
		{1000000, 100 * M, false, COUNTER_FIRST, 0},
		{1001000, 100 * M + 900, false, COUNTER_OK, 900},
		{1001050, 100 * M + 600, false, COUNTER_STALLED, 900},
		{1002000, 100 * M + 1500, false, COUNTER_OK, 1500},
	}},
	{"the same without a range", 0, 2000, {
		{1000000, 100 * M, false, COUNTER_FIRST, 0},
		{1001000, 100 * M - 500, false, COUNTER_STALLED, 0},
		{1002000, 100 * M + 500, false, COUNTER_OK, 500},
	}},
	{"where the wrap is as near as the step back it is a wrap", 10 * M - 1, 2000, {
		{1000000, 9 * M, false, COUNTER_FIRST, 0},
		{1001000, 8 * M, false, COUNTER_WRAP, 9 * M},
	}, .wraps = 1},

	{"values that can't be read make one gap, bridged by the next good one", INTEL, 2000, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{1100000, MISSING, false, COUNTER_GAP, 0},
		{1200000, MISSING, false, COUNTER_GAP, 0},
		{1300000, 40 * M, false, COUNTER_GAP_ENDED, 30 * M},
		{1400000, 50 * M, false, COUNTER_OK, 40 * M},
	}, .gaps = 1},
	{"a gap before the first value is a gap, and the first value is still the first", INTEL, 2000, {
		{1000000, MISSING, false, COUNTER_GAP, 0},
		{1100000, 40 * M, false, COUNTER_FIRST, 0},
		{1200000, 41 * M, false, COUNTER_OK, 1 * M},
	}, .gaps = 1},
	{"one wrap inside a gap is counted", 999, 0, {
		{1000000, 990, false, COUNTER_FIRST, 0},
		{1100000, MISSING, false, COUNTER_GAP, 0},
		{1200000, 10, false, COUNTER_GAP_ENDED, 20},
	}, .wraps = 1, .gaps = 1},
	{"a zone that went away and came back at 0 was reset", INTEL, 2000, {
		{1000000, 100000 * M, false, COUNTER_FIRST, 0},
		{1100000, MISSING, false, COUNTER_GAP, 0},
		{5000000, 200 * M, false, COUNTER_RESET, 0},
		{5100000, 210 * M, false, COUNTER_OK, 10 * M},
	}, .resets = 1, .gaps = 1},
	{"a value above the range is none of this counter's", 1000, 0, {
		{1000000, 10, false, COUNTER_FIRST, 0},
		{1100000, 5000, false, COUNTER_GAP, 0},
		{1200000, 30, false, COUNTER_GAP_ENDED, 20},
	}, .gaps = 1},
	{"the last value of the range is one", 1000, 0, {
		{1000000, 1000, false, COUNTER_FIRST, 0},
		{1100000, 1001, false, COUNTER_GAP, 0},
	}, .gaps = 1},
	{"a negative value is no value", INTEL, 2000, {
		{1000000, -5, false, COUNTER_GAP, 0},
		{1100000, 5, false, COUNTER_FIRST, 0},
	}, .gaps = 1},

	{"time for several wraps, and 60 W before: two rounds are likelier than one or three", 100 * M - 1, 200, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{1100000, 16 * M, false, COUNTER_OK, 6 * M},
		{1200000, 22 * M, false, COUNTER_OK, 12 * M},
		{5200000, 62 * M, false, COUNTER_WRAPS, 252 * M}, // 4 s: 40 J seen, 240 J expected, 800 J possible
	}, .wraps = 2, .ambiguous = 1},
	{"… also when the value went back", 100 * M - 1, 200, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{1100000, 16 * M, false, COUNTER_OK, 6 * M},
		{5100000, 6 * M, false, COUNTER_WRAPS, 296 * M}, // 90 J seen, 240 J expected: 290 is nearer than 190
	}, .wraps = 3, .ambiguous = 1},
	{"never more rounds than full power allows", 100 * M - 1, 50, {
		{1000000, 0, false, COUNTER_FIRST, 0},
		{2000000, 90 * M, false, COUNTER_OK, 90 * M},     // 90 W for once: within the slack
		{6000000, 10 * M, false, COUNTER_WRAPS, 210 * M}, // 120 J of 200 J possible, 360 J expected
	}, .wraps = 2, .ambiguous = 1},
	{"time for several, but the power before speaks for the one that is seen", 100 * M - 1, 200, {
		{1000000, 90 * M, false, COUNTER_FIRST, 0},
		{1100000, 96 * M, false, COUNTER_OK, 6 * M},
		{2100000, 55 * M, false, COUNTER_WRAP, 65 * M}, // 59 J seen, 60 J expected, 159 J possible
	}, .wraps = 1, .ambiguous = 1},
	{"nothing known of the power before: the fewest rounds", 100 * M - 1, 200, {
		{1000000, 10 * M, false, COUNTER_FIRST, 0},
		{5000000, 50 * M, false, COUNTER_OK, 40 * M},
	}, .ambiguous = 1},
	{"an hour's interval at 100 W", 262143328850, 2000, {
		{1000000, 0, false, COUNTER_FIRST, 0},
		{61000000, 6000 * M, false, COUNTER_OK, 6000 * M},
		{3661000000, 6000 * M + 97856671149, false, COUNTER_WRAPS, 366000 * M},
	}, .wraps = 1, .ambiguous = 1},

	{"a counter that was stuck for a minute delivers all at once: energy, no reset", INTEL, 2000, {
		{1000000, 1 * M, false, COUNTER_FIRST, 0},
		{31000000, 1 * M, false, COUNTER_STALLED, 0},
		{60900000, 1 * M, false, COUNTER_STALLED, 0},
		{61000000, 6001 * M, false, COUNTER_OK, 6000 * M},
	}},
	{"a counter that updates once a second may deliver two seconds' worth", INTEL, 100, {
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

// A year at 350 W, sampled every ten seconds, is some 42,000 wraps; not one microjoule may be lost.
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

// Whatever it is fed, the total never falls and never grows by more than full power allows.
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
	ROWS_ADD_ONE(&tests, "a year at 350 W loses nothing", year_at_350_w);
	ROWS_ADD_ONE(&tests, "any sequence of values gives a plausible total", any_values);
	return rows_run(&tests, "counter");
}
