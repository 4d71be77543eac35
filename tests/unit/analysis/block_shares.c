#include "builder.h"

enum { SPANS_MAX = 6, EXPECTED_MAX = 4 };

/* 10 s at 10 Hz; the target alone is busy; package-0 at 20 W. Exclusive time and energy of blocks. */
struct call {
	const char *name;
	int32_t pid, tid;
	double begin_s, end_s;
	enum span_kind kind;
};

struct expected {
	const char *name;
	double self_s, self_j, total_j;
};

static const struct row {
	const char *teaches;
	struct call calls[SPANS_MAX];
	struct expected expected[EXPECTED_MAX];
	double outside_j;
} rows[] = {
	{"single block: all is exclusive", {{"a", 1, 1, 2, 4}}, {{"a", 2, 40, 40}}, 160},
	{"inner block: its time is not exclusive to the outer one", {{"a", 1, 1, 2, 6}, {"b", 1, 1, 3, 4}},
		{{"a", 3, 60, 80}, {"b", 1, 20, 20}}, 120},
	{"three levels: time is subtracted from the enclosing one only",
		{{"a", 1, 1, 0, 10}, {"b", 1, 1, 1, 5}, {"c", 1, 1, 2, 3}, {"b", 1, 1, 6, 7}},
		{{"a", 5, 100, 200}, {"b", 4, 80, 100}, {"c", 1, 20, 20}}, 0},
	{"recursion: both calls belong to the block", {{"a", 1, 1, 2, 6}, {"a", 1, 1, 3, 4}}, {{"a", 4, 80, 80}}, 120},
	{"another thread: exclusive time unchanged, energy divided while both run",
		{{"a", 1, 1, 2, 6}, {"b", 1, 2, 4, 8}}, {{"a", 4, 60, 80}, {"b", 4, 60, 80}}, 80},
	{"another process: exclusive time unchanged, energy divided while both run",
		{{"a", 1, 1, 2, 6}, {"b", 2, 2, 4, 8}}, {{"a", 4, 60, 80}, {"b", 4, 60, 80}}, 80},
	{"two threads in one block: their times are added", {{"a", 1, 1, 2, 6}, {"a", 1, 2, 2, 6}}, {{"a", 8, 80, 80}},
		120},
	{"range: exclusive time is what no nested span of its process has",
		{{"r", 1, 1, 1, 9, SPAN_RANGE}, {"a", 1, 1, 2, 4}, {"b", 1, 2, 3, 5}},
		{{"r", 5, 100, 160}, {"a", 2, 30, 40}, {"b", 2, 30, 40}}, 40},
	{"range: spans of another process are not inside it", {{"r", 1, 1, 2, 6, SPAN_RANGE}, {"a", 2, 2, 4, 8}},
		{{"r", 4, 60, 80}, {"a", 4, 60, 80}}, 80},
	{"overlapping ranges share their energy",
		{{"r", 1, 1, 2, 6, SPAN_RANGE}, {"q", 1, 1, 4, 8, SPAN_RANGE}, {"a", 1, 1, 5, 6}},
		{{"r", 3, 50, 80}, {"q", 3, 50, 80}, {"a", 1, 20, 20}}, 80},
	{"unknown thread, not nested: the span that began last is innermost", {{"a", 1, 0, 2, 5}, {"b", 1, 0, 4, 8}},
		{{"a", 2, 40, 60}, {"b", 4, 80, 80}}, 80},
	{"same begin and end: the later one in the file is inside", {{"a", 1, 1, 2, 4}, {"b", 1, 1, 2, 4}},
		{{"a", 0, 0, 40}, {"b", 2, 40, 40}}, 160},
	{"consecutive blocks without a gap", {{"a", 1, 1, 2, 4}, {"b", 1, 1, 4, 6}},
		{{"a", 2, 40, 40}, {"b", 2, 40, 40}}, 120},
	{"block of zero length", {{"a", 1, 1, 2, 2}}, {{"a", 0, 0, 0}}, 200},
	{"block beyond the run: time, no energy", {{"a", 1, 1, -5, 1}, {"b", 1, 1, 9, 99}},
		{{"a", 6, 20, 20}, {"b", 90, 20, 20}}, 160},
	{"block that ends before it begins: no call", {{"a", 1, 1, 4, 2}, {"b", 1, 1, 2, 4}},
		{{"a", 0, 0, 0}, {"b", 2, 40, 40}}, 160},
};

static const struct block_finding *block_of(const struct findings *findings, const char *name)
{
	for (size_t i = 0; i < findings->n_blocks; i++)
		if (strcmp(findings->blocks[i].name, name) == 0)
			return &findings->blocks[i];
	fail_msg("no block %s", name);
	return NULL;
}

static double stacks_j(const struct findings *findings)
{
	double sum_j = 0;
	for (size_t i = 0; i < findings->n_stacks; i++)
		sum_j += findings->stacks[i].self_j;
	return sum_j;
}

static void build_busy(struct run *run)
{
	build_simple(run, 101);
	build_cpu(run, 1, 0, 0, 1);
	build_stamps(build_metered(run, "package-0", DOMAIN_PACKAGE, 20));
}

static void check(void **state)
{
	const struct row *row = *state;
	struct run run;
	struct findings findings;
	struct run_span spans[SPANS_MAX];
	build_busy(&run);
	run.spans = spans;
	for (const struct call *call = row->calls; run.n_spans < SPANS_MAX && call->name != NULL; call++)
		spans[run.n_spans++] = (struct run_span){.id = (int64_t)run.n_spans + 1,
			.name = call->name,
			.pid = call->pid,
			.tid = call->tid,
			.kind = call->kind,
			.cpu_ns = VALUE_MISSING,
			.begin_ns = at_s(call->begin_s),
			.end_ns = at_s(call->end_s)};
	assert_int_equal(findings_make(&run, &findings), 0);
	for (const struct expected *e = row->expected; e < row->expected + EXPECTED_MAX && e->name != NULL; e++) {
		const struct block_finding *block = block_of(&findings, e->name);
		assert_close(block->self_time_s, e->self_s);
		assert_close(block->self_j, e->self_j);
		assert_close(block->total_j, e->total_j);
		assert_true(block->self_error_j >= 0);
	}
	assert_close(findings.outside_j, row->outside_j);
	assert_close(stacks_j(&findings) + findings.outside_j, 200);
	findings_finish(&findings);
	build_finish(&run);
}

/* ---- for any spans, each joule of the target belongs to exactly one block ---- */

enum { FOREST_SPANS = 400, FOREST_NAMES = 12 };

struct rng {
	uint64_t state;
};

static uint64_t roll(struct rng *rng, uint64_t sides)
{
	rng->state = rng->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (rng->state >> 33) % sides;
}

// Nested and not, ranges, unknown threads, equal times, beyond the run, never ended, backwards; arbitrary parents.
static void grow_forest(struct run *run, struct rng *rng, struct run_span *spans, char names[][4])
{
	for (size_t i = 0; i < FOREST_SPANS; i++) {
		int64_t begin_ns = at_s((double)roll(rng, 1400) / 100 - 2);
		int64_t length_ns = (int64_t)(roll(rng, 8) == 0 ? roll(rng, 6000) : roll(rng, 40)) * NS_PER_MS;
		spans[i] = (struct run_span){.id = (int64_t)i + 1,
			.parent = (int64_t)roll(rng, FOREST_SPANS + 5),
			.name = names[roll(rng, FOREST_NAMES)],
			.pid = (int32_t)roll(rng, 3),
			.tid = (int32_t)roll(rng, 4),
			.kind = roll(rng, 6) == 0 ? SPAN_RANGE : SPAN_NESTED,
			.close = (enum span_close)roll(rng, SPAN_CLOSES),
			.cpu_ns = VALUE_MISSING,
			.begin_ns = begin_ns,
			.end_ns = roll(rng, 20) == 0 ? VALUE_MISSING : begin_ns + length_ns};
		if (roll(rng, 50) == 0)
			spans[i].end_ns = begin_ns - length_ns;
	}
	run->spans = spans;
	run->n_spans = FOREST_SPANS;
}

static void nothing_is_lost(void **state)
{
	static struct run_span spans[FOREST_SPANS];
	char names[FOREST_NAMES][4];
	for (size_t i = 0; i < FOREST_NAMES; i++)
		snprintf(names[i], sizeof(names[i]), "%c", (int)('a' + i));
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rng rng = {seed};
		struct run run;
		struct findings findings;
		build_busy(&run);
		build_stamps(build_metered(&run, "dram-0", DOMAIN_DRAM, 3));
		build_powered(&run, "gpu-0", DOMAIN_GPU, 50);
		for (size_t i = 0; i < run.n; i++) // the target's share changes all the time
			run.values[RUN_SYSTEM_BUSY][i] += (int64_t)(i * (1 + seed % 7)) * 20 * NS_PER_MS;
		grow_forest(&run, &rng, spans, names);
		assert_int_equal(findings_make(&run, &findings), 0);
		double sum_j = findings.outside_j, self_s = 0;
		for (size_t k = 0; k < findings.n_blocks; k++) {
			const struct block_finding *block = &findings.blocks[k];
			sum_j += block->self_j;
			self_s += block->self_time_s;
			assert_true(block->self_j <= block->total_j * (1 + 1e-9) + 1e-9);
			assert_true(block->self_time_s <= block->compute_time_s.total * (1 + 1e-9));
			assert_true(block->self_error_j >= 0 && isfinite(block->self_error_j));
			assert_true(block->error_j >= 0 && isfinite(block->error_j));
		}
		assert_true(findings.ledger.target_j > 0 && self_s > 0);
		assert_close(sum_j, findings.ledger.target_j);
		assert_close(stacks_j(&findings) + findings.outside_j, findings.ledger.target_j);
		findings_finish(&findings);
		build_finish(&run);
	}
}

static void stacks_by_process(void **state)
{
	static struct run_process processes[] = {{.pid = 7, .command = "train"}, {.pid = 8, .command = "train"}};
	struct run run;
	struct findings findings;
	struct run_span spans[] = {
		{.id = 1, .pid = 7, .tid = 7, .name = "a", .begin_ns = at_s(1), .end_ns = at_s(3)},
		{.id = 2, .pid = 8, .tid = 8, .name = "a", .begin_ns = at_s(4), .end_ns = at_s(5)},
		{.id = 3, .pid = 9, .tid = 9, .name = "a", .begin_ns = at_s(6), .end_ns = at_s(7)},
	};
	build_busy(&run);
	run.processes = processes;
	run.n_processes = ARRAY_SIZE(processes);
	run.spans = spans;
	run.n_spans = ARRAY_SIZE(spans);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_int_equal(findings.n_stacks, 4); // processes of one name count as one
	assert_string_equal(findings.stacks[0].name, "train");
	assert_int_equal(findings.stacks[0].parent, STACK_NONE);
	assert_int_equal(findings.stacks[1].parent, 0);
	assert_close(findings.stacks[1].self_j, 60);
	assert_close(findings.stacks[1].self_time_s, 3);
	assert_string_equal(findings.stacks[2].name, "pid 9");
	assert_close(findings.stacks[3].self_j, 20);
	spans[1] = (struct run_span){.id = 2, .pid = 7, .tid = 7, .name = "b", .begin_ns = at_s(3), .end_ns = at_s(4)};
	findings_finish(&findings);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_int_equal(findings.stacks[2].parent, 0); // begun when "a" ended: beside it
	findings_finish(&findings);
	build_finish(&run);
}

static void without_energy(void **state)
{
	struct run run;
	struct findings findings;
	struct run_span span = {.id = 1, .name = "a", .begin_ns = at_s(1), .end_ns = at_s(3), .cpu_ns = 5};
	build_simple(&run, 101);
	run.spans = &span;
	run.n_spans = 1;
	assert_int_equal(findings_make(&run, &findings), 0);
	const struct block_finding *block = &findings.blocks[0];
	assert_close(block->self_time_s, 2);
	assert_close(block->self_j, (double)NAN);
	assert_close(block->self_error_j, (double)NAN);
	assert_close(block->total_j, (double)NAN);
	assert_close(findings.outside_j, (double)NAN);
	assert_close(findings.stacks[1].self_j, (double)NAN);
	assert_close(block->cpu_s, (double)NAN); // no CPU counter was read
	assert_close(block->thread_cpu_s, 5e-9);
	assert_int_equal(block->method, BLOCK_NO_ENERGY);
	assert_false(block->resolved);
	findings_finish(&findings);
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "60 random sets of spans: each joule belongs to exactly one block", nothing_is_lost);
	ROWS_ADD_ONE(&tests, "stacks begin with the process; processes of one name are one", stacks_by_process);
	ROWS_ADD_ONE(&tests, "no energy: times only", without_energy);
	return rows_run(&tests, "block_shares");
}
