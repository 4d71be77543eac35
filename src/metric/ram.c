#include "metric/ram.h"

#include "base/checked_arith.h"
#include "base/util.h"

void ram_init(struct ram_tracker *tracker)
{
	*tracker = (struct ram_tracker){0};
}

// Used without the recorder's estimate: an increase of RSS counts as private, and no part exceeds RSS.
static struct ram_values by_rss(const struct ram_reading *last, int64_t rss_bytes)
{
	double rss = value_to_double(rss_bytes, 1);
	if (!last->known)
		return (struct ram_values){rss, (double)NAN, (double)NAN, 0};
	double private_bytes = (double)last->private_bytes, shared_bytes = (double)last->shared_bytes;
	if (value_ok(rss_bytes) && value_ok(last->rss_bytes))
		private_bytes = fmax(0, private_bytes + (double)(rss_bytes - last->rss_bytes));
	// fmin returns the other value if RSS is NaN: a reading alone is enough.
	shared_bytes = fmin(shared_bytes, rss);
	private_bytes = fmin(private_bytes, rss - shared_bytes);
	return (struct ram_values){private_bytes + shared_bytes, private_bytes, shared_bytes, 0};
}

static struct ram_values carried_forward(const struct ram_reading *last, int64_t rss_bytes, int64_t estimate_bytes)
{
	if (!value_ok(estimate_bytes))
		return by_rss(last, rss_bytes);
	double total_bytes = (double)estimate_bytes;
	double shared_bytes = last->known ? fmin((double)last->shared_bytes, total_bytes) : (double)NAN;
	return (struct ram_values){total_bytes, total_bytes - shared_bytes, shared_bytes, 0};
}

static struct ram_values next_values(struct ram_reading *last, const struct ram_reading *now, int64_t estimate_bytes)
{
	bool gone = !now->known && !value_ok(now->rss_bytes);
	if (gone)
		return (struct ram_values){(double)NAN, (double)NAN, (double)NAN, 0};
	struct ram_values before = carried_forward(last, now->rss_bytes, estimate_bytes);
	if (!now->known)
		return before;
	*last = *now;
	struct ram_values read = value_ok(estimate_bytes)
		? (struct ram_values){(double)(now->private_bytes + now->shared_bytes), (double)now->private_bytes,
			  (double)now->shared_bytes, 0}
		: by_rss(last, now->rss_bytes);
	read.above_bytes = fmax(0, before.total_bytes - read.total_bytes); // 0 if one of them is NaN
	return read;
}

static double limit_combined(double combined, double main, double descendants)
{
	if (isnan(combined) || isnan(main) || isnan(descendants))
		return combined;
	return fmin(fmax(combined, fmax(main, descendants)), main + descendants);
}

bool ram_next(struct ram_tracker *tracker, const int64_t *run_values, struct ram_values ret_values[RAM_GROUPS])
{
	const int64_t *v = run_values;
	struct ram_reading now[RAM_GROUPS] = {
		[RAM_MAIN] = {false, v[RUN_MAIN_PRIVATE], v[RUN_MAIN_SHARED], v[RUN_MAIN_RSS]},
		[RAM_DESCENDANTS] = {false, v[RUN_DESCENDANTS_PRIVATE], v[RUN_DESCENDANTS_SHARED],
			v[RUN_DESCENDANTS_RSS]},
		[RAM_COMBINED] = {false, value_sum(v[RUN_MAIN_PRIVATE], v[RUN_DESCENDANTS_PRIVATE]),
			v[RUN_COMBINED_SHARED], value_sum(v[RUN_MAIN_RSS], v[RUN_DESCENDANTS_RSS])},
	};
	const int64_t estimates[RAM_GROUPS] = {v[RUN_MAIN_RAM], v[RUN_DESCENDANTS_RAM], v[RUN_COMBINED_RAM]};
	bool read = false;
	for (size_t g = 0; g < RAM_GROUPS; g++) {
		now[g].known = value_ok(now[g].private_bytes) && value_ok(now[g].shared_bytes);
		read |= now[g].known;
		ret_values[g] = next_values(&tracker->last[g], &now[g], estimates[g]);
	}
	struct ram_values *combined = &ret_values[RAM_COMBINED];
	double total_bytes = limit_combined(combined->total_bytes, ret_values[RAM_MAIN].total_bytes,
		ret_values[RAM_DESCENDANTS].total_bytes);
	combined->private_bytes += total_bytes - combined->total_bytes;
	combined->total_bytes = total_bytes;
	return read;
}

void ram_carry_back(double totals_bytes[RAM_GROUPS], const double above_bytes[RAM_GROUPS])
{
	for (size_t g = 0; g < RAM_GROUPS; g++)
		totals_bytes[g] = fmax(0, totals_bytes[g] - above_bytes[g]);
	totals_bytes[RAM_COMBINED] = limit_combined(totals_bytes[RAM_COMBINED], totals_bytes[RAM_MAIN],
		totals_bytes[RAM_DESCENDANTS]);
}
