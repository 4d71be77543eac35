#include "report/report.h"

#include "fixture.h"

struct lines {
	size_t n;
};

static void count(void *data)
{
	((struct lines *)data)->n++;
}

/* 10 s, 20 W, only the target. */
static struct run_span spans[] = {
	{.id = 1, .pid = 7, .tid = 7, .name = "outer;\\\n"},
	{.id = 2, .pid = 7, .tid = 7, .name = "a"},
	{.id = 3, .pid = 7, .tid = 7, .name = "a"},
	{.id = 4, .pid = 7, .tid = 7, .name = ""},
	{.id = 5, .pid = 8, .tid = 8, .name = "a"},
	{.id = 6, .pid = 8, .tid = 8, .name = "no time"},
};
static const double begins_s[] = {1, 2, 4, 4.5, 8, 9}, ends_s[] = {7, 3, 6, 5, 9, 9};

static const struct row {
	const char *teaches;
	enum folded_weight weight;
	const char *text;
} rows[] = {
	{"joules: each stack once, the rest as outside", FOLDED_ENERGY,
		"train;outer\\x3b\\\\\\n 60.000000000\n"
		"train;outer\\x3b\\\\\\n;a 50.000000000\n"
		"train;outer\\x3b\\\\\\n;a;\"\" 10.000000000\n"
		"pid 8;a 20.000000000\n"
		"[outside] 60.000000000\n"},
	{"seconds of threads: no outside", FOLDED_TIME,
		"train;outer\\x3b\\\\\\n 3.000000000\n"
		"train;outer\\x3b\\\\\\n;a 2.500000000\n"
		"train;outer\\x3b\\\\\\n;a;\"\" 0.500000000\n"
		"pid 8;a 1.000000000\n"},
};

static void check(void **state)
{
	static struct run_process process = {.pid = 7, .command = "train"};
	const struct row *row = *state;
	struct run run;
	struct findings findings;
	struct buf out;
	struct lines lines = {0};
	build_simple(&run, 101);
	build_cpu(&run, 1, 0, 0, 1);
	build_stamps(build_metered(&run, "package-0", DOMAIN_PACKAGE, 20));
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		spans[i].begin_ns = at_s(begins_s[i]);
		spans[i].end_ns = at_s(ends_s[i]);
	}
	run.spans = spans;
	run.n_spans = ARRAY_SIZE(spans);
	run.processes = &process;
	run.n_processes = 1;
	assert_int_equal(findings_make(&run, &findings), 0);
	buf_init(&out, 10000);
	folded_text(&findings, row->weight, &out, count, &lines);
	assert_string_equal(out.data, row->text);
	assert_int_equal(lines.n, row->weight == FOLDED_ENERGY ? 5 : 4);
	buf_finish(&out);
	findings_finish(&findings);
	build_finish(&run);
}

// 5,000 nested spans: lines end at 1,024 levels and no energy is lost.
static void deep(void **state)
{
	enum { DEEP = 5000 };
	static struct run_span nested[DEEP];
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 1, 0, 0, 1);
	build_stamps(build_metered(&run, "package-0", DOMAIN_PACKAGE, 20));
	for (size_t i = 0; i < DEEP; i++)
		nested[i] = (struct run_span){.id = (int64_t)i + 1,
			.pid = 1,
			.tid = 1,
			.name = "f",
			.cpu_ns = VALUE_MISSING,
			.begin_ns = at_s(1 + (double)i / 10000),
			.end_ns = at_s(9 - (double)i / 10000)};
	run.spans = nested;
	run.n_spans = DEEP;
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_int_equal(findings.n_stacks, 1 + STACK_DEPTH_MAX);
	double sum_j = findings.outside_j;
	for (size_t i = 0; i < findings.n_stacks; i++)
		sum_j += findings.stacks[i].self_j;
	assert_close(sum_j, 200);
	assert_close(findings.blocks[0].self_j, 160);
	findings_finish(&findings);
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "spans nested deeper than the limit: energy is kept", deep);
	return rows_run(&tests, "folded");
}
