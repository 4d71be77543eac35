#include "analysis/compare/tracking_blocks.h"

#include "base/util.h"

#include "rows.h"

/* Timepoints at 0, 1, 2 … 9 s, with main_ram their square; calls of one block as begin, end, … */
static const struct row {
	const char *teaches;
	size_t n_times; // calls are half as many
	double times_s[12];
	int64_t calls, non_empty_calls, timepoints;
	double total_s, ram_mean;
} table[] = {
	{"timepoints at both ends belong to the call", 2, {2, 4}, 1, 1, 3, 2, (4 + 9 + 16) / 3.0},
	{"call between two timepoints: empty", 2, {2.1, 2.9}, 1, 0, 0, 0.8, (double)NAN},
	{"call of zero length on a timepoint: one timepoint", 2, {3, 3}, 1, 1, 1, 0, 9},
	{"touching calls: the shared timepoint counts once", 4, {1, 2, 2, 3}, 2, 2, 3, 2, (1 + 4 + 9) / 3.0},
	{"call inside another: no further timepoint", 4, {1, 4, 2, 3}, 2, 2, 4, 4, (1 + 4 + 9 + 16) / 4.0},
	{"overlapping calls, in any order", 4, {5, 8, 3, 6}, 2, 2, 6, 6, (9 + 16 + 25 + 36 + 49 + 64) / 6.0},
	{"apart", 4, {0, 0.5, 8.5, 20}, 2, 2, 2, 12, (0 + 81) / 2.0},
	{"calls before and after all timepoints", 4, {-5, -1, 10, 12}, 2, 0, 0, 6, (double)NAN},
	{"call over all timepoints", 2, {-5, 20}, 1, 1, 10, 25, 285 / 10.0},
	{"call that was never stopped: not counted", 4, {1, (double)NAN, 2, 3}, 1, 1, 2, 1, (4 + 9) / 2.0},
	{"block that was never stopped: no calls", 2, {1, (double)NAN}, 0, 0, 0, 0, (double)NAN},
	{"long call, then short ones inside and after it", 6, {0, 7, 1, 1.5, 6.5, 8}, 3, 3, 9, 9, 204 / 9.0},
};

static void make_table(struct arena *arena, struct tracking_table *made)
{
	*made = (struct tracking_table){.n = 11, .n_timed = 10};
	for (size_t c = 0; c < TRACKING_COLUMNS; c++)
		made->values[c] = arena_alloc(arena, made->n, sizeof(double));
	for (size_t i = 0; i < made->n_timed; i++) {
		made->values[TRACKING_MAIN_RAM][i] = (double)(i * i);
		made->values[TRACKING_TIMESTAMP][i] = (double)i;
		made->values[TRACKING_GPU_SUM][i] = (double)NAN;
	}
	made->values[TRACKING_TIMESTAMP][10] = (double)NAN; // time unknown: in no block
	made->values[TRACKING_MAIN_RAM][10] = 1000;
	made->values[TRACKING_GPU_SUM][10] = (double)NAN;
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fabs(b);
}

static void check(void **state)
{
	const struct row *row = *state;
	struct arena *arena = arena_new();
	struct tracking_table made;
	make_table(arena, &made);
	struct sub_tracking_call calls[6];
	for (size_t i = 0; i < row->n_times / 2; i++)
		calls[i] = (struct sub_tracking_call){7, "f", row->times_s[2 * i], row->times_s[2 * i + 1]};
	static const char f[] = "f";
	for (size_t i = 0; i < row->n_times / 2; i++)
		calls[i].name = f; // equal names share a pointer
	struct tracking_findings findings;
	assert_int_equal(tracking_blocks_make(&made, calls, row->n_times / 2, arena, &findings), 0);
	assert_int_equal(findings.n_blocks, 1);
	const struct tracking_block *block = &findings.blocks[0];
	assert_int_equal(block->calls, row->calls);
	assert_int_equal(block->non_empty_calls, row->non_empty_calls);
	assert_int_equal(block->timepoints, row->timepoints);
	assert_true(same(block->compute_time_s.total, row->total_s));
	assert_true(same(block->metrics[TRACKING_MAIN_RAM].mean, row->ram_mean));
	assert_true(isnan(block->metrics[TRACKING_GPU_SUM].mean));
	assert_true(same(findings.overall[TRACKING_MAIN_RAM].mean, 1285 / 11.0));
	arena_free(arena);
}

// Random calls and random timepoints, compared one by one.
static void random_calls(void **state)
{
	enum { CALLS = 40, ROUNDS = 200 };
	struct arena *arena = arena_new();
	struct tracking_table made;
	make_table(arena, &made);
	static const char f[] = "f";
	unsigned seed = 1;
	for (int round = 0; round < ROUNDS; round++) {
		struct sub_tracking_call calls[CALLS];
		int64_t non_empty = 0, inside[10] = {0}, timepoints = 0;
		for (int i = 0; i < CALLS; i++) {
			double begin_s = (rand_r(&seed) % 120 - 10) / 10.0; // NOLINT(cert-msc30-c)
			calls[i] = (struct sub_tracking_call){7, f, begin_s,
				begin_s + rand_r(&seed) % (round % 20 + 1) / 10.0};
			bool any = false;
			for (int t = 0; t < 10; t++) {
				if (t < calls[i].begin_s || t > calls[i].end_s)
					continue;
				any = true;
				inside[t] = 1;
			}
			non_empty += any;
		}
		for (int t = 0; t < 10; t++)
			timepoints += inside[t];
		struct tracking_findings findings;
		assert_int_equal(tracking_blocks_make(&made, calls, CALLS, arena, &findings), 0);
		assert_int_equal(findings.blocks[0].non_empty_calls, non_empty);
		assert_int_equal(findings.blocks[0].timepoints, timepoints);
	}
	arena_free(arena);
}

static void without_tracking_file(void **state)
{
	struct arena *arena = arena_new();
	const struct sub_tracking_call call = {7, "f", 1, 3};
	struct tracking_findings findings;
	assert_int_equal(tracking_blocks_make(NULL, &call, 1, arena, &findings), 0);
	assert_int_equal(findings.blocks[0].calls, 1);
	assert_true(findings.blocks[0].timepoints == VALUE_MISSING);
	assert_true(findings.blocks[0].non_empty_calls == VALUE_MISSING);
	assert_true(isnan(findings.blocks[0].metrics[0].mean) && isnan(findings.overall[0].mean));
	assert_int_equal(tracking_blocks_make(NULL, &call, 0, arena, &findings), 0);
	assert_int_equal(findings.n_blocks, 0);
	arena_free(arena);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	ROWS_ADD_ONE(&rows, "random calls: equal to a comparison with each timepoint", random_calls);
	ROWS_ADD_ONE(&rows, "no tracking file: usage unknown", without_tracking_file);
	return rows_run(&rows, "code blocks of tracking files");
}
