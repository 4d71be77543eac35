// Power readings used for the variation within an interval; finding them takes the same time however few rows have one.
#include "energy/curve.h"

#include "base/clock.h"

#include "rows.h"

enum { ROWS = 6000 };
static const int64_t step_ns = 100 * NS_PER_MS;

struct readings { // of a device, a row each 100 ms
	struct arena *arena;
	int64_t *t_ns, *mw;
	struct curve curve;
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

// About one row in `every` has a reading; 0: none has.
static struct readings make_readings(size_t n, uint32_t every, uint32_t seed)
{
	struct readings r = {.arena = arena_new()};
	r.t_ns = arena_alloc(r.arena, n, sizeof(*r.t_ns));
	r.mw = arena_alloc(r.arena, n, sizeof(*r.mw));
	for (size_t i = 0; i < n; i++) {
		bool is_known = every > 0 && next_random(&seed) % every == 0;
		r.t_ns[i] = (int64_t)i * step_ns;
		r.mw[i] = is_known ? 100000 + next_random(&seed) % 100000 : VALUE_MISSING;
	}
	r.curve.readings = (struct power_readings){.n = n, .t_ns = r.t_ns, .mw = {.plain = r.mw}};
	assert_int_equal(power_readings_index(&r.curve.readings, r.arena), 0);
	return r;
}

/* The rule as specified, over all rows: the readings inside; on each side at least 10 readings, and all within twice
 * the interval's length, of the nearest 1000 rows. */
static struct power_range range_by_rule(const struct readings *r, size_t n, int64_t from_ns, int64_t to_ns, double w)
{
	struct power_range range = {w, w};
	int64_t reach_ns = 2 * (to_ns - from_ns);
	size_t n_before = 0, n_after = 0, begin = 0, end;
	while (begin < n && r->t_ns[begin] < from_ns)
		begin++;
	for (end = begin; end < n && r->t_ns[end] < to_ns; end++)
		if (value_ok(r->mw[end]))
			power_range_add(&range, (double)r->mw[end] / 1e3);
	for (size_t i = begin; i-- > 0 && begin - i <= 1000;) {
		bool counts = value_ok(r->mw[i]) && (n_before < 10 || from_ns - r->t_ns[i] <= reach_ns);
		n_before += counts;
		if (counts)
			power_range_add(&range, (double)r->mw[i] / 1e3);
	}
	for (size_t i = end; i < n && i - end < 1000; i++) {
		bool counts = value_ok(r->mw[i]) && (n_after < 10 || r->t_ns[i] - to_ns <= reach_ns);
		n_after += counts;
		if (counts)
			power_range_add(&range, (double)r->mw[i] / 1e3);
	}
	return range;
}

static const struct row {
	const char *teaches;
	uint32_t every;
} rows[] = {
	{"every row has a reading: the readings inside and around count", 1},
	{"one row in three has a reading: the same number of readings counts", 3},
	{"one row in 70: none in most words of 64 rows", 70},
	{"one row in 900: the search ends after 1000 rows", 900},
	{"no row has a reading: none counts", 0},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct readings r = make_readings(ROWS, row->every, 7);
	uint32_t seed = 11;
	for (int i = 0; i < 2000; i++) {
		int64_t from_ns = (int64_t)(next_random(&seed) % (ROWS + 200)) * step_ns - 100 * step_ns +
			next_random(&seed) % 3 * (step_ns / 2);
		int64_t to_ns = from_ns + 1 + next_random(&seed) % (i % 7 == 0 ? 500000 : 3000) * NS_PER_MS;
		// Longer than two periods of the counter (0): half of the range of the readings alone.
		struct power_swing found = power_swing_within(&r.curve, from_ns, to_ns, 150,
			(struct power_range){150, 150});
		struct power_range range = range_by_rule(&r, ROWS, from_ns, to_ns, 150);
		assert_true(found.above_w == 0.5 * (range.max_w - 150));
		assert_true(found.below_w == 0.5 * (150 - range.min_w));
	}
	arena_free(r.arena);
}

static int64_t cost_ns(const struct readings *r, size_t n)
{
	int64_t min_ns = INT64_MAX;
	double sum_w = 0;
	for (int turn = 0; turn < 5; turn++) {
		int64_t before_ns = clock_cpu_ns();
		for (size_t i = 0; i < n; i += 5)
			sum_w += power_swing_within(&r->curve, r->t_ns[i], r->t_ns[i] + step_ns, 150,
				(struct power_range){150, 150})
					 .above_w;
		int64_t turn_ns = clock_cpu_ns() - before_ns;
		min_ns = turn_ns < min_ns ? turn_ns : min_ns;
	}
	assert_true(sum_w >= 0);
	return min_ns;
}

static void few_readings_cost_no_more(void **state)
{
	enum { N = 100000 };
	struct readings all = make_readings(N, 1, 3), few = make_readings(N, 300, 3);
	assert_true(cost_ns(&few, N) < 3 * cost_ns(&all, N));
	arena_free(all.arena);
	arena_free(few.arena);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "a reading in one row of 300: at most three times the time of a reading in each row",
		few_readings_cost_no_more);
	return rows_run(&tests, "power_swing");
}
