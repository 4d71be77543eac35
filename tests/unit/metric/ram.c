#include "metric/ram.h"

#include "base/util.h"

#include "rows.h"

static const int64_t none = VALUE_MISSING;

static const struct row { // a reading of smaps at the first sample, only RSS at the second
	const char *teaches;
	int64_t private_bytes, shared_bytes, rss_bytes, next_rss_bytes;
	double total, own, shared; // at the second sample; NaN: unknown
} table[] = {
	{"RSS unchanged: same parts", 70, 30, 100, 100, 100, 70, 30},
	{"memory allocated since the reading: private", 70, 30, 100, 150, 150, 120, 30},
	{"memory freed since the reading: was private", 70, 30, 100, 60, 60, 30, 30},
	{"smaps exceeds the earlier RSS: no part exceeds the whole", 120, 30, 100, 160, 160, 130, 30},
	{"RSS below the shared part: shared is reduced", 70, 30, 100, 20, 20, 0, 20},
	{"pages mapped by several processes: RSS counts them several times", 70, 30, 130, 140, 110, 80, 30},
	{"RSS never read: reading unchanged", 70, 30, VALUE_MISSING, 100, 100, 70, 30},
	{"no reading: RSS only", VALUE_MISSING, VALUE_MISSING, 100, 90, 90, (double)NAN, (double)NAN},
	{"RSS unknown: all parts unknown", 70, 30, 100, VALUE_MISSING, (double)NAN, (double)NAN, (double)NAN},
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

/* With values carried forward by the recorder; a reading at the second sample. */
static const struct stored {
	const char *teaches;
	int64_t carried[RAM_GROUPS];     // at the first sample and at the second
	int64_t main[2], descendants[2]; // reading at the second sample: private, shared
	int64_t combined_shared;
	double totals[RAM_GROUPS], above[RAM_GROUPS]; // at the second sample
} stored_table[] = {
	{"no reading: carried value, whatever RSS is", {500, 520, 530}, {-1, -1}, {-1, -1}, -1, {500, 520, 530},
		{0, 0, 0}},
	{"reading above an RSS read a moment earlier: shown unchanged", {500, 500, 500}, {50, 460}, {240, 450}, 460,
		{510, 690, 750}, {0, 0, 0}},
	{"carried value too large: corrected by the reading", {500, 4000, 4500}, {0, 500}, {30, 500}, 500,
		{500, 530, 530}, {0, 3470, 3970}},
	{"combined value never above the sum of the parts", {500, 100, 900}, {-1, -1}, {-1, -1}, -1, {500, 100, 600},
		{0, 0, 0}},
	{"combined value never below the larger part", {500, 100, 400}, {-1, -1}, {-1, -1}, -1, {500, 100, 500},
		{0, 0, 0}},
	{"sampled reading: marked as sampled", {500, 100, 500}, {500, 0}, {100, 20}, 0, {500, 120, 600}, {0, 0, 0}},
};

static void check_stored(void **state)
{
	const struct stored *row = *state;
	int64_t sample[RUN_COUNT];
	for (size_t m = 0; m < RUN_COUNT; m++)
		sample[m] = none;
	struct ram_tracker tracker;
	struct ram_values values[RAM_GROUPS];
	ram_init(&tracker);
	sample[RUN_MAIN_RSS] = 500;
	sample[RUN_DESCENDANTS_RSS] = 8 * 500;
	for (size_t g = 0; g < RAM_GROUPS; g++)
		sample[RUN_MAIN_RAM + g] = row->carried[g];
	assert_false(ram_next(&tracker, sample, values));
	bool is_read = row->main[0] >= 0;
	if (is_read) {
		sample[RUN_MAIN_PRIVATE] = row->main[0];
		sample[RUN_MAIN_SHARED] = row->main[1];
		sample[RUN_DESCENDANTS_PRIVATE] = row->descendants[0];
		sample[RUN_DESCENDANTS_SHARED] = row->descendants[1];
		sample[RUN_COMBINED_SHARED] = row->combined_shared;
	}
	assert_int_equal(ram_next(&tracker, sample, values), is_read);
	for (size_t g = 0; g < RAM_GROUPS; g++) {
		assert_true(same(values[g].total_bytes, row->totals[g]));
		assert_true(same(values[g].above_bytes, row->above[g]));
		assert_int_equal(isnan(values[g].private_bytes), !is_read);
	}
}

static void carried_back(void **state)
{
	(void)state;
	double totals[RAM_GROUPS] = {500, 4000, 4500}, above[RAM_GROUPS] = {0, 3470, 3970};
	ram_carry_back(totals, above);
	assert_true(
		same(totals[RAM_MAIN], 500) && same(totals[RAM_DESCENDANTS], 530) && same(totals[RAM_COMBINED], 530));
	double fewer[RAM_GROUPS] = {500, 30, 530}, more[RAM_GROUPS] = {0, 100, 300};
	ram_carry_back(fewer, more);
	assert_true(same(fewer[RAM_DESCENDANTS], 0) && same(fewer[RAM_COMBINED], 500));
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	ROWS_ADD(&rows, stored_table, check_stored);
	ROWS_ADD_ONE(&rows, "correction carried back: reduced by the excess, never below 0 or out of bounds",
		carried_back);
	return rows_run(&rows, "RAM between two readings");
}
