#include "metric/ram.h"

#include "base/util.h"

#include "rows.h"

static const int64_t none = VALUE_MISSING;

static const struct row { // a reading of smaps at the first sample, RSS alone at the second
	const char *teaches;
	int64_t private_bytes, shared_bytes, rss_bytes, next_rss_bytes;
	double total, own, shared; // at the second; NaN unknown
} table[] = {
	{"nothing has changed", 70, 30, 100, 100, 100, 70, 30},
	{"what was allocated since is private", 70, 30, 100, 150, 150, 120, 30},
	{"what was given back was private", 70, 30, 100, 60, 60, 30, 30},
	{"smaps saw more than RSS a moment before: no part exceeds the whole", 120, 30, 100, 160, 160, 130, 30},
	{"less resident than was shared", 70, 30, 100, 20, 20, 0, 20},
	{"several processes map the same: RSS counts it twice", 70, 30, 130, 140, 110, 80, 30},
	{"RSS was never read", 70, 30, VALUE_MISSING, 100, 100, 70, 30},
	{"no reading: RSS is all there is", VALUE_MISSING, VALUE_MISSING, 100, 90, 90, (double)NAN, (double)NAN},
	{"RSS is unknown: all is", 70, 30, 100, VALUE_MISSING, (double)NAN, (double)NAN, (double)NAN},
};

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) < 1e-9;
}

static void check(void **state)
{
	const struct row *row = *state;
	int64_t sample[RUN_COUNT];
	for (size_t m = 0; m < RUN_COUNT; m++)
		sample[m] = none;
	struct ram_tracker tracker;
	struct ram_values values[RAM_GROUPS];
	ram_init(&tracker);
	sample[RUN_MAIN_PRIVATE] = row->private_bytes;
	sample[RUN_MAIN_SHARED] = row->shared_bytes;
	sample[RUN_MAIN_RSS] = row->rss_bytes;
	ram_next(&tracker, sample, values);
	sample[RUN_MAIN_PRIVATE] = sample[RUN_MAIN_SHARED] = none;
	sample[RUN_MAIN_RSS] = row->next_rss_bytes;
	ram_next(&tracker, sample, values);
	assert_true(same(values[RAM_MAIN].total_bytes, row->total));
	assert_true(same(values[RAM_MAIN].private_bytes, row->own));
	assert_true(same(values[RAM_MAIN].shared_bytes, row->shared));
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	return rows_run(&rows, "RAM between two readings");
}
