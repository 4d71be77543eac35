/* A counter shows only the mean power between two updates. A load in step with the counter can vary by hundreds of watts
 * while all means are equal. The variation within a stretch is therefore estimated by the first line that applies:
 *
 *   several updates long    half the range of the device's own power readings around it: a load in step with the
 *                           updates moves less energy there, and a slower one is visible in the means of the stretches
 *   shorter                 from zero to 2.1 times the mean, extended by the adjacent readings and means
 *
 * Equal power readings do not narrow the second line. Readings of NVIDIA GPUs from Turing to Ada are means of about 100 ms
 * (arXiv 2312.02741), as long as the counter's period. They are the same for a constant load and for one in step with the
 * counter.
 *
 * At x within a stretch of length L the energy then differs from the straight line by at most
 *   max(min(above x, below (L - x)), min(below x, above (L - x))). */
#include "energy/curve.h"

#include "base/util.h"

#include <errno.h>

// Readings on each side of a stretch: at least this many, and all within this many lengths of it.
enum { NEAREST = 10 };
static const double reach_lengths = 2;
enum { ROWS_MAX = 1000 }; // device rows searched on each side; most may lack a power reading

static const double long_interval_periods = 2; // a longer stretch contains several updates
static const double long_interval_share = 0.5; // fraction of the range of readings
static const double unseen_max = 2.1;          // multiple of the mean power

void power_range_add(struct power_range *range, double w)
{
	range->min_w = w < range->min_w ? w : range->min_w;
	range->max_w = w > range->max_w ? w : range->max_w;
}

/* ---- rows with a reading ---- */

enum { WORD_BITS = 64 };
static const size_t NO_ROW = SIZE_MAX;

int power_readings_index(struct power_readings *readings, struct arena *arena)
{
	uint64_t *known = arena_alloc(arena, readings->n / WORD_BITS + 1, sizeof(*known));
	if (known == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < readings->n; i++)
		if (value_ok(values_at(readings->mw, i)))
			known[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
	readings->known = known;
	return 0;
}

// First row with a reading in begin … end - 1.
static size_t first_known(const struct power_readings *readings, size_t begin, size_t end)
{
	if (begin >= end)
		return NO_ROW;
	size_t word = begin / WORD_BITS, last_word = (end - 1) / WORD_BITS;
	uint64_t bits = readings->known[word] & UINT64_MAX << begin % WORD_BITS;
	while (bits == 0 && word < last_word)
		bits = readings->known[++word];
	size_t row = bits != 0 ? word * WORD_BITS + (size_t)__builtin_ctzll(bits) : end;
	return row < end ? row : NO_ROW;
}

// Last row with a reading in begin … end - 1.
static size_t last_known(const struct power_readings *readings, size_t begin, size_t end)
{
	if (begin >= end)
		return NO_ROW;
	size_t word = (end - 1) / WORD_BITS, first_word = begin / WORD_BITS;
	uint64_t bits = readings->known[word] & UINT64_MAX >> (WORD_BITS - 1 - (end - 1) % WORD_BITS);
	while (bits == 0 && word > first_word)
		bits = readings->known[--word];
	if (bits == 0)
		return NO_ROW;
	size_t row = word * WORD_BITS + WORD_BITS - 1 - (size_t)__builtin_clzll(bits);
	return row >= begin ? row : NO_ROW;
}

/* ---- ranges ---- */

static void add_reading(struct power_range *range, const struct power_readings *readings, size_t row)
{
	power_range_add(range, (double)values_at(readings->mw, row) / 1e3);
}

// Adds the readings before a row.
static void add_before(const struct power_readings *readings, size_t row, int64_t t_ns, int64_t reach_ns,
	struct power_range *range)
{
	size_t n = 0, least = row > ROWS_MAX ? row - ROWS_MAX : 0;
	for (size_t i = row; (i = last_known(readings, least, i)) != NO_ROW; n++) {
		if (n >= NEAREST && t_ns - readings->t_ns[i] > reach_ns)
			return;
		add_reading(range, readings, i);
	}
}

// Adds the readings from a row on.
static void add_after(const struct power_readings *readings, size_t row, int64_t t_ns, int64_t reach_ns,
	struct power_range *range)
{
	size_t n = 0, end = readings->n - row > ROWS_MAX ? row + ROWS_MAX : readings->n;
	for (size_t i = row; (i = first_known(readings, i, end)) != NO_ROW; i++, n++) {
		if (n >= NEAREST && readings->t_ns[i] - t_ns > reach_ns)
			return;
		add_reading(range, readings, i);
	}
}

// Range of the readings within and around a time interval.
static void range_around(const struct power_readings *readings, int64_t from_ns, int64_t to_ns,
	struct power_range *range)
{
	int64_t reach_ns = (int64_t)(reach_lengths * (double)(to_ns - from_ns));
	size_t begin = slice_lower_bound(readings->t_ns, readings->n, from_ns);
	size_t end = slice_lower_bound_near(readings->t_ns, readings->n, to_ns, begin);
	for (size_t i = begin; (i = first_known(readings, i, end)) != NO_ROW; i++)
		add_reading(range, readings, i);
	add_before(readings, begin, from_ns, reach_ns, range);
	add_after(readings, end, to_ns, reach_ns, range);
}

static struct power_swing swing(double w, struct power_range range, double part)
{
	return (struct power_swing){
		.above_w = part * (range.max_w - w),
		.below_w = part * (w - range.min_w),
	};
}

struct power_swing power_swing_within(const struct curve *curve, int64_t from_ns, int64_t to_ns, double w,
	struct power_range beside)
{
	struct power_range range = {w, w};
	if (curve->from_power)
		return (struct power_swing){0};
	range_around(&curve->readings, from_ns, to_ns, &range);
	if (seconds_between(from_ns, to_ns) > long_interval_periods * curve->updates.longest_s)
		return swing(w, range, long_interval_share);
	power_range_add(&range, beside.min_w);
	power_range_add(&range, beside.max_w);
	power_range_add(&range, 0);
	power_range_add(&range, unseen_max * w);
	return swing(w, range, 1);
}
