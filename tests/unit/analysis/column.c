// CPU percent of a run from counters with ticks of 10 ms.

#include "analysis/column.h"

#include "builder.h"

static const struct row {
	const char *teaches;
	double length_s;
	int64_t threads;
	double main_s, busy_s, idle_s;       // increase of the counters from the first sample to the last
	double main_percent, system_percent; // of a machine with four cores
} table[] = {
	{"long run: CPU time over time", 1, 1, 0.5, 2, 2, 50, 200},
	{"tick from before the run: limited to what a thread can use", 0.003, 1, 0.01, 0.01, 0.03, 100, 100},
	{"two threads", 0.01, 2, 0.03, 0.03, 0.01, 200, 300},
	{"threads that no sample saw: time beyond the ticks is kept", 0.08, 1, 0.32, 0.32, 0, 375, 400},
	{"tick of one core: the machine's use is limited to that", 0.001, 1, 0, 0.01, 0, 0, 400},
	{"no tick at all: the machine's use is unknown", 0.001, 1, 0, 0, 0, 0, (double)NAN},
};

static double last_known(const struct columns *columns, enum tracking_column_id column)
{
	double last = (double)NAN, row[TRACKING_METRICS];
	for (size_t i = 0; i < columns->run->n; i++) {
		columns_at(columns, i, row);
		last = isnan(row[column]) ? last : row[column];
	}
	return last;
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-6;
}

static void check(void **state)
{
	const struct row *row = *state;
	struct run run;
	build_run(&run, 2);
	build_segment(&run, 0, row->length_s);
	build_times(&run, 0, 2, 0, row->length_s);
	for (int i = 0; i < 2; i++) {
		run.values[RUN_MAIN_CPU][i] = llround(i * row->main_s * 1e9);
		run.values[RUN_SYSTEM_BUSY][i] = llround((1 + i * row->busy_s) * 1e9);
		run.values[RUN_SYSTEM_IDLE][i] = llround((1 + i * row->idle_s) * 1e9);
		run.values[RUN_MAIN_THREADS][i] = row->threads;
	}
	struct columns columns;
	assert_int_equal(columns_make(&run, run.arena, &columns), 0);
	assert_true(same(last_known(&columns, TRACKING_MAIN_SUM), row->main_percent));
	assert_true(same(last_known(&columns, TRACKING_SYSTEM_SUM), row->system_percent));
	arena_free(run.arena);
}

/* A run as stored by earlier versions: 500 MB, eight children from the second sample on, and a reading at the
 * fourth. */
static void ram_carried_back(void **state)
{
	(void)state;
	struct run run;
	build_run(&run, 6);
	build_segment(&run, 0, 1);
	build_times(&run, 0, 6, 0, 0.1);
	build_gauge(&run, RUN_MAIN_RSS, 500);
	for (size_t i = 0; i < 6; i++)
		run.values[RUN_DESCENDANTS_RSS][i] = i >= 1 ? 4000 : 0;
	const int64_t read[][6] = {{0, 500, 0, 0, 0, 0}, {3, 0, 500, 40, 500, 500}};
	for (size_t k = 0; k < 2; k++) {
		size_t i = (size_t)read[k][0];
		run.values[RUN_MAIN_PRIVATE][i] = read[k][1];
		run.values[RUN_MAIN_SHARED][i] = read[k][2];
		run.values[RUN_DESCENDANTS_PRIVATE][i] = read[k][3];
		run.values[RUN_DESCENDANTS_SHARED][i] = read[k][4];
		run.values[RUN_COMBINED_SHARED][i] = read[k][5];
	}
	struct columns columns;
	assert_int_equal(columns_make(&run, run.arena, &columns), 0);
	static const double combined[] = {500, 540, 540, 540, 540, 540};
	for (size_t i = 0; i < 6; i++) {
		assert_true(same(columns.ram[RAM_MAIN][i], 500));
		assert_true(same(columns.ram[RAM_COMBINED][i], combined[i]));
	}
	assert_true(same(columns.private_max_bytes[RAM_DESCENDANTS], 540)); // carried forward, 3460 too many
	assert_true(same(columns.private_max_bytes[RAM_COMBINED], 540));
	arena_free(run.arena);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	ROWS_ADD_ONE(&rows, "RAM between two readings: the lower of the values carried forward and carried back",
		ram_carried_back);
	return rows_run(&rows, "CPU percent");
}
