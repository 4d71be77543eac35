#include "builder.h"

#include "analysis/names.h"

enum { SPANS_MAX = 4 };

/* 10 s at 10 Hz; the target alone is busy; package-0 at 20 W and, not added, core-0 at 12 W. */
struct call {
	const char *name;
	double begin_s, end_s; // NAN: never ended
};

static const struct row {
	const char *teaches;
	struct call calls[SPANS_MAX];
	const char *block; // with these results:
	int64_t n_calls, non_empty, timepoints;
	double total_s, energy_j;
} rows[] = {
	{"2 s of 20 W are 40 J; samples at both ends count", {{"a", 2, 4}}, "a", 1, 1, 21, 2, 40},
	{"two calls", {{"a", 2, 3}, {"a", 5, 6}}, "a", 2, 2, 22, 2, 40},
	{"calls in arbitrary order", {{"a", 5, 6}, {"a", 2, 3}}, "a", 2, 2, 22, 2, 40},
	{"two threads at once: time counted twice, energy once", {{"a", 2, 4}, {"a", 3, 5}}, "a", 2, 2, 31, 4, 60},
	{"recursion: the outer call's energy includes the inner call", {{"a", 2, 6}, {"a", 3, 4}}, "a", 2, 2, 41, 5,
		80},
	{"nested block: the child has its own energy", {{"a", 2, 6}, {"b", 3, 4}}, "b", 1, 1, 11, 1, 20},
	{"nested block: the parent's energy includes the child's", {{"a", 2, 6}, {"b", 3, 4}}, "a", 1, 1, 41, 4, 80},
	{"shorter than the interval: no sample, but energy", {{"a", 2.01, 2.06}}, "a", 1, 0, 0, 0.05, 1},
	{"never ended: not counted as a call", {{"a", 2, NAN}}, "a", 0, 0, 0, 0, 0},
	{"beyond the end of the run: no energy", {{"a", 9, 12}}, "a", 1, 1, 11, 3, 20},
};

static const struct block_finding *block_of(const struct findings *findings, const char *name)
{
	for (size_t i = 0; i < findings->n_blocks; i++)
		if (strcmp(findings->blocks[i].name, name) == 0)
			return &findings->blocks[i];
	fail_msg("no block %s", name);
	return NULL;
}

static void build_spans(struct run *run, const struct call *calls)
{
	run->spans = arena_alloc(run->arena, SPANS_MAX, sizeof(*run->spans));
	for (; run->n_spans < SPANS_MAX && calls[run->n_spans].name != NULL; run->n_spans++) {
		const struct call *call = &calls[run->n_spans];
		run->spans[run->n_spans] = (struct run_span){.id = (int64_t)run->n_spans,
			.name = call->name,
			.begin_ns = at_s(call->begin_s),
			.end_ns = isnan(call->end_s) ? VALUE_MISSING : at_s(call->end_s)};
	}
}

static void check(void **state)
{
	const struct row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 1, 0, 0, 1);
	build_metered(&run, "package-0", DOMAIN_PACKAGE, 20);
	build_metered(&run, "core-0", DOMAIN_CORE, 12);
	build_spans(&run, row->calls);
	assert_int_equal(findings_make(&run, &findings), 0);
	const struct block_finding *block = block_of(&findings, row->block);
	assert_int_equal(block->calls, row->n_calls);
	assert_int_equal(block->non_empty_calls, row->non_empty);
	assert_int_equal(block->timepoints, row->timepoints);
	assert_close(block->compute_time_s.total, row->total_s);
	assert_close(block->total_j, row->energy_j);
	assert_close(block->domain_j[0], row->energy_j);
	assert_close(block->domain_j[1], row->energy_j * 12 / 20);
	findings_finish(&findings);
	build_finish(&run);
}

// The target has a quarter of the CPU time in the first 5 s and all of it afterwards.
static void energy_is_the_targets(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 0, 0, 0, 1);
	for (size_t i = 0; i < run.n; i++)
		run.values[RUN_MAIN_CPU][i] = (int64_t)(i <= 50 ? i * 25 : 1250 + (i - 50) * 100) * NS_PER_MS;
	build_metered(&run, "package-0", DOMAIN_PACKAGE, 20);
	build_spans(&run, (const struct call[SPANS_MAX]){{"early", 1, 3}, {"late", 6, 8}, {"both", 4, 6}});
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(block_of(&findings, "early")->total_j, 10);
	assert_close(block_of(&findings, "late")->total_j, 40);
	assert_close(block_of(&findings, "both")->total_j, 25);
	assert_string_equal(findings.blocks[0].name, "both"); // sorted by name
	findings_finish(&findings);
	build_finish(&run);
}

static void columns_over_samples(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	for (size_t i = 0; i < run.n; i++)
		run.values[RUN_MAIN_THREADS][i] = i < 50 ? 1 : 3;
	build_gauge(&run, RUN_DESCENDANTS_THREADS, 0);
	build_spans(&run, (const struct call[SPANS_MAX]){{"a", 4.5, 5.45}});
	assert_int_equal(findings_make(&run, &findings), 0);
	const struct value_stats *threads = &findings.blocks[0].columns[TRACKING_COMBINED_THREADS];
	assert_close(threads->min, 1);
	assert_close(threads->max, 3);
	assert_close(threads->mean, 2);
	assert_close(threads->std, 1); // of the population
	assert_close(findings.blocks[0].columns[TRACKING_MAIN_RAM].mean, (double)NAN);
	findings_finish(&findings);
	build_finish(&run);
}

// Closing states of calls, and CPU time: the target has half a core in the first 5 s and two cores afterwards.
static void ends_and_cpu(void **state)
{
	struct run run;
	struct findings findings;
	struct run_span spans[] = {
		{.name = "a", .begin_ns = at_s(1), .end_ns = at_s(3), .cpu_ns = 400000000, .close = SPAN_ENDED},
		{.name = "a", .begin_ns = at_s(2), .end_ns = at_s(4), .cpu_ns = VALUE_MISSING, .close = SPAN_UNWOUND},
		{.name = "a", .begin_ns = at_s(4.5), .end_ns = at_s(5.5), .cpu_ns = 100000000, .close = SPAN_AT_DEATH},
		{.name = "a", .begin_ns = at_s(6), .end_ns = at_s(7), .cpu_ns = VALUE_MISSING, .close = SPAN_AT_EXEC},
		{.name = "a",
			.begin_ns = at_s(8),
			.end_ns = at_s(8.05),
			.cpu_ns = VALUE_MISSING,
			.close = SPAN_AT_THREAD_END},
		{.name = "a",
			.begin_ns = at_s(9),
			.end_ns = VALUE_MISSING,
			.cpu_ns = VALUE_MISSING,
			.close = SPAN_OPEN},
		{.name = "unknown", .begin_ns = at_s(1), .end_ns = at_s(2), .cpu_ns = VALUE_MISSING},
	};
	build_simple(&run, 101);
	build_cpu(&run, 0, 0, 0, 4);
	for (size_t i = 0; i < run.n; i++)
		run.values[RUN_DESCENDANTS_CPU][i] = (int64_t)(i <= 50 ? i * 50 : 2500 + (i - 50) * 200) * NS_PER_MS;
	run.spans = spans;
	run.n_spans = ARRAY_SIZE(spans);
	assert_int_equal(findings_make(&run, &findings), 0);
	const struct block_finding *block = block_of(&findings, "a");
	assert_int_equal(block->calls, 5);
	assert_int_equal(block->unwound, 1);
	assert_int_equal(block->cut, 3);
	assert_close(block->cpu_s, 3 * 0.5 + 0.5 * 0.5 + 0.5 * 2 + 1 * 2 + 0.05 * 2); // 1 to 4 s counts once
	assert_close(block->thread_cpu_s, 0.5);
	assert_close(block_of(&findings, "unknown")->cpu_s, 0.5);
	assert_close(block_of(&findings, "unknown")->thread_cpu_s, (double)NAN);
	findings_finish(&findings);
	build_finish(&run);
}

// Calls of 1 ms, 2 ms … in succession, not ordered by length.
static double p95_of(size_t n)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	run.spans = arena_alloc(run.arena, n, sizeof(*run.spans));
	run.n_spans = n;
	int64_t t_ns = build_start_ns;
	for (size_t i = 0; i < n; i++) {
		int64_t end_ns = t_ns + (int64_t)(i * 7 % n + 1) * NS_PER_MS; // 7 and n have no common divisor
		run.spans[i] = (struct run_span){.id = (int64_t)i, .name = "a", .begin_ns = t_ns, .end_ns = end_ns};
		t_ns = end_ns;
	}
	assert_int_equal(findings_make(&run, &findings), 0);
	double p95_s = block_of(&findings, "a")->p95_s;
	findings_finish(&findings);
	build_finish(&run);
	return p95_s;
}

// Of n calls, the smallest value that 95 % do not exceed: the 10th of 10, the 19th of 20, the 95th of 100.
static void p95(void **state)
{
	static const size_t n[][2] = {{1, 1}, {2, 2}, {10, 10}, {19, 19}, {20, 19}, {39, 38}, {40, 38}, {100, 95},
		{10000, 9500}};
	for (size_t i = 0; i < ARRAY_SIZE(n); i++)
		assert_close(p95_of(n[i][0]), (double)n[i][1] / 1e3);
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_spans(&run, (const struct call[SPANS_MAX]){{"a", 1, 5}, {"a", 2, 3}, {"b", 3, 3.5}, {"c", 4, NAN}});
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(block_of(&findings, "a")->p95_s, 4); // recursion: each call counts, inclusive of inner calls
	assert_close(block_of(&findings, "b")->p95_s, 0.5);
	assert_close(block_of(&findings, "c")->p95_s, (double)NAN); // never ended
	findings_finish(&findings);
	build_finish(&run);
}

// 200,000 calls of 1,000 names: a quadratic algorithm would not finish.
static void very_many(void **state)
{
	enum { CALLS = 200000, NAMES = 1000 };
	struct run run;
	struct findings findings;
	char(*names)[16] = calloc(NAMES, sizeof(*names));
	build_simple(&run, 101);
	build_cpu(&run, 1, 0, 0, 1);
	build_metered(&run, "package-0", DOMAIN_PACKAGE, 20);
	run.spans = arena_alloc(run.arena, CALLS, sizeof(*run.spans));
	run.n_spans = CALLS;
	for (size_t i = 0; i < NAMES; i++)
		snprintf(names[i], sizeof(names[i]), "block-%03zu", i);
	for (size_t i = 0; i < CALLS; i++)
		run.spans[i] = (struct run_span){.id = (int64_t)i,
			.name = names[i % NAMES],
			.begin_ns = build_start_ns + (int64_t)i * 50000,
			.end_ns = build_start_ns + (int64_t)(i + 1) * 50000};
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_int_equal(findings.n_blocks, NAMES);
	double sum_j = 0;
	for (size_t i = 0; i < findings.n_blocks; i++) {
		assert_int_equal(findings.blocks[i].calls, CALLS / NAMES);
		sum_j += findings.blocks[i].total_j;
	}
	assert_close(sum_j, 200);
	findings_finish(&findings);
	build_finish(&run);
	free(names);
}

static void names_in_order(void **state)
{
	const char *const rows_of_names[] = {"b", "a", "b", "", "a"};
	struct arena *arena = arena_new();
	struct names names;
	assert_int_equal(names_make(rows_of_names, sizeof(rows_of_names[0]), 5, arena, &names), 0);
	assert_int_equal(names.n, 3);
	assert_string_equal(names.text[0], "");
	assert_string_equal(names.text[2], "b");
	const uint32_t expected[] = {2, 1, 2, 0, 1};
	assert_memory_equal(names.of, expected, sizeof(expected));
	arena_free(arena);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "block energy: the target's share, window by window", energy_is_the_targets);
	ROWS_ADD_ONE(&tests, "sample columns within a block; unread values are unknown", columns_over_samples);
	ROWS_ADD_ONE(&tests, "closing states of calls; CPU time while they ran", ends_and_cpu);
	ROWS_ADD_ONE(&tests, "95th percentile of durations: one call, many, nested, none", p95);
	ROWS_ADD_ONE(&tests, "200,000 calls of 1,000 names", very_many);
	ROWS_ADD_ONE(&tests, "block numbers: alphabetical order of names", names_in_order);
	return rows_run(&tests, "blocks");
}
