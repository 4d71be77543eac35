/* From spans to deconvolved energies: blocks of 0.2 to 5 ms in a loop on a 100 ms counter, through findings_make. */
#include "loop.h"

enum { BLOCKS = 8 };

static const struct loop_kind kind = {
	.n_blocks = BLOCKS,
	.min_s = 2e-4,
	.max_s = 5e-3,
	.vary_s = 0.1,
	.length_s = 40,
	.period_s = 0.1,
	.period_off = 5e-5,
	.quantum_j = 1e-3,
	.late_s = 2e-4,
};

static const char *const names[] = {"", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8"};

static void add_span(struct run *run, const char *name, int32_t tid, int64_t begin_ns, int64_t end_ns)
{
	run->spans[run->n_spans] = (struct run_span){.id = (int64_t)run->n_spans + 1,
		.pid = 1,
		.tid = tid,
		.name = name,
		.cpu_ns = VALUE_MISSING,
		.begin_ns = begin_ns,
		.end_ns = end_ns};
	run->n_spans++;
}

// "train" is around the loop; with a bystander another thread is in a span all the time.
static void build_spans(struct loop *loop, bool bystander)
{
	struct run *run = &loop->run;
	run->spans = arena_alloc(run->arena, loop->n_pieces + 2, sizeof(*run->spans));
	add_span(run, "train", 1, at_s(0), at_s(loop->kind.length_s));
	if (bystander)
		add_span(run, "bystander", 2, at_s(0), at_s(loop->kind.length_s));
	for (size_t i = 0; i < loop->n_pieces; i++)
		add_span(run, names[loop->pieces[i].column], 1, loop->pieces[i].begin_ns, loop->pieces[i].end_ns);
}

static double own_j(const struct findings *findings)
{
	double sum_j = findings->outside_j;
	for (size_t k = 0; k < findings->n_blocks; k++)
		sum_j += findings->blocks[k].self_j;
	return sum_j;
}

static const struct block_finding *block_of(const struct findings *findings, const char *name)
{
	for (size_t i = 0; i < findings->n_blocks; i++)
		if (strcmp(findings->blocks[i].name, name) == 0)
			return &findings->blocks[i];
	fail_msg("no block %s", name);
	return NULL;
}

static void alone(void **state)
{
	static struct loop loop;
	struct findings findings;
	assert_int_equal(loop_simulate(&loop, &kind, 3), 0);
	build_spans(&loop, false);
	assert_int_equal(findings_make(&loop.run, &findings), 0);
	for (size_t b = 1; b <= BLOCKS; b++) {
		const struct block_finding *block = block_of(&findings, names[b]);
		assert_int_equal(block->method, BLOCK_FOLDED);
		assert_true(block->resolved);
		assert_true(fabs(block->total_j - loop.true_j[b]) <= 0.1 * loop.true_j[b]);
		assert_true(fabs(block->total_j - loop.true_j[b]) <= 2 * block->error_j);
		assert_close(block->total_j, block->self_j);
		assert_close(block->total_j, block->domain_j[0]);
	}
	const struct block_finding *train = block_of(&findings, "train");
	assert_true(fabs(train->total_j / findings.ledger.target_j - 1) < 1e-4);
	assert_true(train->self_j < train->total_j);
	assert_close(own_j(&findings), findings.ledger.target_j);
	findings_finish(&findings);
	loop_finish(&loop);
}

// Energy of a thread running beside a block is in the block's energy, but not in its exclusive energy.
static void beside_another(void **state)
{
	static struct loop loop;
	struct findings findings;
	assert_int_equal(loop_simulate(&loop, &kind, 3), 0);
	build_spans(&loop, true);
	assert_int_equal(findings_make(&loop.run, &findings), 0);
	for (size_t b = 1; b <= BLOCKS; b++) {
		const struct block_finding *block = block_of(&findings, names[b]);
		assert_int_equal(block->method, BLOCK_INTERPOLATED);
		assert_true(block->self_j < 0.7 * block->total_j);
	}
	assert_close(own_j(&findings), findings.ledger.target_j);
	findings_finish(&findings);
	loop_finish(&loop);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "short blocks: deconvolved energy within 10 % of the true energy", alone);
	ROWS_ADD_ONE(&tests, "short blocks beside another thread: only the exclusive energy is deconvolved",
		beside_another);
	return rows_run(&tests, "block_fold");
}
