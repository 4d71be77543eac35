#include "builder.h"

enum { METRICS_MAX = 4 };

/* 10 s at 10 Hz, 20 W, only the target: "outer" from 1 s to 9 s in process 1, thread 1; inside it "inner" from 2 s
 * to 4 s and again, itself inside itself, from 5 s to 7 s; "range" of process 1 from 3 s to 8 s. */
static struct run_span spans[] = {
	{.id = 10, .pid = 1, .tid = 1, .name = "outer"},
	{.id = 20, .parent = 10, .pid = 1, .tid = 1, .name = "inner"},
	{.id = 30, .parent = 10, .pid = 1, .tid = 1, .name = "inner"},
	{.id = 40, .parent = 30, .pid = 1, .tid = 1, .name = "inner"},
	{.id = 50, .parent = 60, .pid = 2, .tid = 2, .name = "ring"},
	{.id = 60, .parent = 50, .pid = 2, .tid = 2, .name = "ring"},
	{.id = 70, .pid = 1, .tid = 1, .name = "range", .kind = SPAN_RANGE},
	{.id = 80, .pid = 1, .tid = 1, .name = "open"},
	{.id = 90, .pid = 1, .tid = 1, .name = "other source"}, // by time inside the first "inner"
};
static const double begins_s[] = {1, 2, 5, 5.5, 1, 1, 3, 0, 2.5}, ends_s[] = {9, 4, 7, 6.5, 2, 2, 8, NAN, 3.5};

struct told {
	double t_s, value;
	int64_t span;
	int32_t pid, tid;
};

static const struct row {
	const char *teaches;
	struct told told[METRICS_MAX];
	const char *block;
	int64_t count; // 0: no metric reported in it
	double sum, j_per_unit;
} rows[] = {
	{"metric reported inside: 40 J and 40 J for 8 units", {{3, 4, 20, 1, 1}, {6, 4, 30, 1, 1}}, "inner", 2, 8, 10},
	{"metric reported inside: counts for the enclosing block too", {{3, 4, 20, 1, 1}, {6, 4, 30, 1, 1}}, "outer", 2,
		8, 20},
	{"recursion: counted once", {{6, 4, 40, 1, 1}}, "inner", 1, 4, 20},
	{"span link takes precedence over time", {{9.5, 4, 20, 1, 1}}, "inner", 1, 4, 20},
	{"no link: by thread and time", {{3, 4, VALUE_MISSING, 1, 1}}, "inner", 1, 4, 20},
	{"no link, another thread: not counted", {{2.5, 4, VALUE_MISSING, 1, 2}}, "outer", 0, 0, 0},
	{"no link, unknown thread: all open spans of the process", {{2.5, 4, 0, 1, 0}}, "outer", 1, 4, 40},
	{"no link, unknown process: all open spans", {{1.5, 4, 0, 0, 0}}, "ring", 1, 4, 5},
	{"invalid link: treated as none", {{3, 4, 12345, 1, 1}}, "inner", 1, 4, 20},
	{"range: contains all metrics of its process", {{6, 5, 40, 1, 1}}, "range", 1, 5, 20},
	{"circular parents: search ends", {{1.5, 4, 60, 2, 2}}, "ring", 1, 4, 5},
	{"fraction of a unit: no energy per unit", {{3, 0.5, 20, 1, 1}, {3, 4, 20, 1, 1}}, "inner", 2, 4.5, NAN},
	{"negative units: no energy per unit", {{3, -4, 20, 1, 1}, {3, 8, 20, 1, 1}}, "inner", 2, 4, NAN},
	{"zero units: no energy per unit", {{3, 0, 20, 1, 1}}, "inner", 1, 0, NAN},
	{"metric unknown: no energy per unit", {{3, NAN, 20, 1, 1}}, "inner", 0, 0, 0},
	{"two sources: unlinked metrics of the enclosing block count", {{3, 4, 90, 1, 1}}, "outer", 1, 4, 40},
	{"two sources: linked metrics of the inner block count", {{3, 4, 20, 1, 1}}, "other source", 1, 4, 5},
	{"two sources: an inner block that begins later has none", {{2.5, 4, 20, 1, 1}}, "other source", 0, 0, 0},
	{"metric of an outer span: not counted for the inner one", {{6, 4, 30, 1, 1}}, "outer", 1, 4, 40},
	{"call that never ended: not counted", {{0.5, 4, 80, 1, 1}}, "open", 0, 0, 0},
};

static void build_spans(struct run *run)
{
	build_simple(run, 101);
	build_cpu(run, 1, 0, 0, 1);
	build_stamps(build_metered(run, "package-0", DOMAIN_PACKAGE, 20));
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		spans[i].begin_ns = at_s(begins_s[i]);
		spans[i].end_ns = isnan(ends_s[i]) ? VALUE_MISSING : at_s(ends_s[i]);
		spans[i].cpu_ns = VALUE_MISSING;
	}
	run->spans = spans;
	run->n_spans = ARRAY_SIZE(spans);
}

static void build_reported(struct run *run, const struct told *told)
{
	run->user_metrics = arena_alloc(run->arena, METRICS_MAX, sizeof(*run->user_metrics));
	for (; run->n_user_metrics < METRICS_MAX && told->t_s > 0; told++)
		run->user_metrics[run->n_user_metrics++] = (struct run_user_metric){.t_ns = at_s(told->t_s),
			.name = "tokens",
			.value = told->value,
			.span = told->span,
			.pid = told->pid,
			.tid = told->tid};
}

static const struct block_finding *block_of(const struct findings *findings, const char *name)
{
	for (size_t i = 0; i < findings->n_blocks; i++)
		if (strcmp(findings->blocks[i].name, name) == 0)
			return &findings->blocks[i];
	fail_msg("no block %s", name);
	return NULL;
}

static void check(void **state)
{
	const struct row *row = *state;
	struct run run;
	struct findings findings;
	build_spans(&run);
	build_reported(&run, row->told);
	assert_int_equal(findings_make(&run, &findings), 0);
	const struct block_finding *block = block_of(&findings, row->block);
	assert_int_equal(block->n_units, row->count > 0);
	if (row->count > 0) {
		assert_string_equal(block->units[0].name, "tokens");
		assert_int_equal(block->units[0].count, row->count);
		assert_close(block->units[0].sum, row->sum);
		assert_close(block->units[0].j_per_unit, row->j_per_unit);
		assert_close(block->units[0].error_j_per_unit,
			isnan(row->j_per_unit) ? (double)NAN : block->error_j / row->sum);
	}
	findings_finish(&findings);
	build_finish(&run);
}

// Span ids and metrics in arbitrary order, two names.
static void in_no_order(void **state)
{
	struct run run;
	struct findings findings;
	build_spans(&run);
	struct run_span first = spans[0], mixed[ARRAY_SIZE(spans)];
	memcpy(mixed, spans, sizeof(spans));
	mixed[0] = spans[5];
	mixed[5] = first;
	run.spans = mixed;
	run.user_metrics = (struct run_user_metric[]){
		{at_s(6), "tokens", 1, .span = 10, .pid = 1, .tid = 1},
		{at_s(3), "images", 2, .span = 10, .pid = 1, .tid = 1},
		{at_s(2), "tokens", 3, .span = 0, .pid = 1, .tid = 1},
	};
	run.n_user_metrics = 3;
	assert_int_equal(findings_make(&run, &findings), 0);
	const struct block_finding *outer = block_of(&findings, "outer");
	assert_int_equal(outer->n_units, 2);
	assert_string_equal(outer->units[0].name, "images");
	assert_string_equal(outer->units[1].name, "tokens");
	assert_close(outer->units[0].j_per_unit, 80);
	assert_close(outer->units[1].j_per_unit, 40);
	findings_finish(&findings);
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "ids and metrics in arbitrary order", in_no_order);
	return rows_run(&tests, "block_units");
}
