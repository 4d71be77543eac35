/* Accuracy of block energies: simulated programs with known energy, beside other programs, sampled ten times a
 * second. At each instant the target's share of the power is its share of the busy cores, and all of it while no other
 * program is busy. The interval must contain the true value for 95 % of all blocks, and must be narrow enough to be
 * useful. */
#include "machine.h"

enum { SEEDS = 3, RUNS = 20, BLOCKS_MAX = 6, CALLS_MAX = 4096, SAMPLES_MAX = 1024, INSIDE_PERCENT = 94 };

struct kind {
	const char *teaches;
	size_t n_blocks;
	double min_s, max_s, vary_s; // of calls; each varies by this factor
	double length_s;
	double waits;     // of the blocks: how many wait instead of computing
	bool parts;       // each computes for a part of its time
	double others[2]; // cores kept busy by other programs, from, to
	double period_s;  // of the counter
	bool exact_cpu;   // otherwise CPU time comes in ticks of 10 ms
	double error_max; // wider errors are useless; median over all blocks, relative to the mean block's energy
	double least;     // required coverage in percent; 0: INSIDE_PERCENT
};

struct program {
	const struct kind *kind;
	uint64_t random;
	double block_s[BLOCKS_MAX], cores[BLOCKS_MAX], core_w[BLOCKS_MAX], true_j[BLOCKS_MAX];
	double idle_w, others_w;
	struct load load;
	double t_s[LEVELS_MAX], target_s[LEVELS_MAX], busy_s[LEVELS_MAX]; // CPU seconds so far, at the changes of power
	size_t n;
	struct run run;
};

static const uint64_t seeds[SEEDS] = {3, 5, 6};
static const char *const names[BLOCKS_MAX] = {"a", "b", "c", "d", "e", "f"};

static void make_blocks(struct program *p)
{
	const struct kind *k = p->kind;
	p->idle_w = random_between(&p->random, 5, 40);
	p->others_w = random_between(&p->random, 8, 30);
	for (size_t b = 0; b < k->n_blocks; b++) {
		p->block_s[b] = k->min_s * pow(k->max_s / k->min_s, random_uniform(&p->random));
		p->cores[b] = b > 0 && random_uniform(&p->random) < k->waits ? 0 : 1;
		if (k->parts)
			p->cores[b] = random_uniform(&p->random);
		p->core_w[b] = random_between(&p->random, 8, 30);
		p->true_j[b] = 0;
	}
}

static void pass(struct program *p, double to_s, size_t block, double others)
{
	double cores = p->cores[block], length_s = to_s - p->t_s[p->n];
	double w = p->idle_w + cores * p->core_w[block] + others * p->others_w;
	load_add(&p->load, p->t_s[p->n], w);
	if (others == 0) // then the energy is the target's, whether it computes or waits
		p->true_j[block] += w * length_s;
	else
		p->true_j[block] += w * cores / (cores + others) * length_s;
	p->t_s[p->n + 1] = to_s;
	p->target_s[p->n + 1] = p->target_s[p->n] + cores * length_s;
	p->busy_s[p->n + 1] = p->busy_s[p->n] + (cores + others) * length_s;
	p->n++;
}

static void add_call(struct program *p, size_t block, double from_s, double to_s)
{
	struct run_span *span = &p->run.spans[p->run.n_spans++];
	*span = (struct run_span){.id = (int64_t)p->run.n_spans,
		.pid = 1,
		.tid = 1,
		.name = names[block],
		.begin_ns = at_s(from_s),
		.end_ns = at_s(to_s),
		.cpu_ns = VALUE_MISSING};
}

static void run_program(struct program *p)
{
	const struct kind *k = p->kind;
	double t_s = 0, others = k->others[0], change_s = 0;
	size_t block = 0;
	p->n = 0;
	p->load.n = 0;
	p->t_s[0] = p->target_s[0] = p->busy_s[0] = 0;
	load_add(&p->load, -5, p->idle_w + others * p->others_w);
	while (t_s < k->length_s && p->n < LEVELS_MAX - 100) {
		double end_s = t_s + p->block_s[block] * random_between(&p->random, 1 - k->vary_s, 1 + k->vary_s);
		add_call(p, block, t_s, end_s);
		for (; change_s < end_s; change_s += random_between(&p->random, 0.03, 0.3)) {
			if (change_s > p->t_s[p->n])
				pass(p, change_s, block, others);
			others = random_between(&p->random, k->others[0], k->others[1]);
		}
		pass(p, end_s, block, others);
		t_s = end_s;
		block = (block + 1) % k->n_blocks;
	}
	load_add(&p->load, t_s, p->idle_w + others * p->others_w);
}

static double cpu_at(const struct program *p, const double *sums_s, double t_s)
{
	size_t i = 0;
	t_s = fmax(0, fmin(t_s, p->t_s[p->n]));
	while (i + 1 < p->n && p->t_s[i + 1] <= t_s)
		i++;
	double part = (t_s - p->t_s[i]) / (p->t_s[i + 1] - p->t_s[i]);
	return sums_s[i] + part * (sums_s[i + 1] - sums_s[i]);
}

static int64_t told_ns(const struct program *p, double cpu_s)
{
	return p->kind->exact_cpu ? llround(cpu_s * 1e9) : (int64_t)(cpu_s * 100) * 10000000;
}

static void record(struct program *p)
{
	double end_s = p->t_s[p->n];
	size_t n = (size_t)(end_s / 0.1) + 2;
	struct counter_model counter = {.period_s = p->kind->period_s,
		.quantum_j = 1e-4,
		.phase_s = p->kind->period_s * random_uniform(&p->random),
		.seed = random_next(&p->random)};
	for (size_t i = 0; i < n; i++)
		p->run.t_ns[i] = at_s(i + 1 < n ? (double)i * 0.1 - 0.001 : end_s + 0.001);
	p->run.n = n;
	build_segment(&p->run, 0, end_s);
	struct run_device *device = build_device(&p->run, "package-0", DOMAIN_PACKAGE);
	device->update_period_s = counter.period_s;
	device->resolution_j = counter.quantum_j;
	for (size_t i = 0; i < n; i++) {
		double t_s = (double)(p->run.t_ns[i] - build_start_ns) / 1e9;
		device->values[DEVICE_ENERGY][i] = counter_read_uj(&counter, &p->load, t_s) + 1000000000;
		p->run.values[RUN_MAIN_CPU][i] = told_ns(p, cpu_at(p, p->target_s, t_s));
		p->run.values[RUN_DESCENDANTS_CPU][i] = p->run.values[RUN_SELF_CPU][i] = 0;
		p->run.values[RUN_SYSTEM_BUSY][i] = told_ns(p, cpu_at(p, p->busy_s, t_s) + 0.004);
	}
}

struct tally { // relative to the mean block's energy
	size_t n, inside;
	double wrong[SEEDS * RUNS * BLOCKS_MAX], error[SEEDS * RUNS * BLOCKS_MAX];
};

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void note_block(struct tally *tally, const struct block_finding *block, double true_j, double mean_j)
{
	tally->wrong[tally->n] = fabs(block->total_j - true_j) / mean_j;
	tally->error[tally->n] = block->error_j / mean_j;
	tally->inside += tally->wrong[tally->n] <= tally->error[tally->n] + 1e-9;
	tally->n++;
}

static size_t all, all_inside; // over all kinds

static void judge(struct tally *tally, const struct kind *kind)
{
	size_t middle = tally->n / 2, most = tally->n * 95 / 100;
	double inside = 100 * (double)tally->inside / (double)tally->n;
	qsort(tally->wrong, tally->n, sizeof(double), ascending);
	qsort(tally->error, tally->n, sizeof(double), ascending);
	print_message("# %-40s inside %5.1f %%; off by %.3f, 95 %%: %.3f; error %.3f, 95 %%: %.3f\n", kind->teaches,
		inside, tally->wrong[middle], tally->wrong[most], tally->error[middle], tally->error[most]);
	all += tally->n;
	all_inside += tally->inside;
	if (inside < (kind->least > 0 ? kind->least : INSIDE_PERCENT) || tally->error[middle] > kind->error_max)
		fail_msg("inside for %.1f %% of the blocks, errors of %.3f", inside, tally->error[middle]);
}

static void all_kinds(void **state)
{
	(void)state;
	assert_true(all > 0 && 100 * all_inside >= 95 * all);
}

// Defaults: blocks of 10 to 40 ms for 10 s, half of them wait, one other core is busy, the counter is updated every
// millisecond.
// clang-format off
static const struct kind rows[] = {
	{"half of the blocks wait", 4, 0.01, 0.04, 0.1, 10, 0.5, false, {1, 1}, 0.001, false, 0.5},
	{"all compute", 4, 0.01, 0.04, 0.1, 10, 0, false, {1, 1}, 0.001, false, 0.15},
	{"all compute, other programs start and end", 4, 0.01, 0.04, 0.1, 10, 0, false, {0, 3}, 0.001, false, 0.2},
	{"no other programs", 4, 0.01, 0.04, 0.1, 10, 0.5, false, {0, 0}, 0.001, false, 0.1},
	{"CPU time to the nanosecond", 4, 0.01, 0.04, 0.1, 10, 0.5, false, {1, 1}, 0.001, true, 0.5},
	{"each block computes for a part of its time", 4, 0.01, 0.04, 0.1, 10, 0, true, {1, 1}, 0.001, false, 0.5},
	{"other programs start and end", 4, 0.01, 0.04, 0.1, 10, 0.5, false, {0.2, 3}, 0.001, false, 0.6},
	{"100 ms counter", 4, 0.01, 0.04, 0.1, 10, 0.5, false, {1, 1}, 0.1, false, 0.5},
	{"20 ms counter, other programs start and end", 4, 0.01, 0.04, 0.1, 10, 0.5, false, {0.2, 3}, 0.02, false, 0.7},
	{"100 ms counter, other programs start and end", 4, 0.01, 0.04, 0.1, 10, 0.5, false, {0.2, 3}, 0.1, false, 0.9, 92},
	{"calls that do not vary", 4, 0.01, 0.04, 0, 10, 0.5, false, {1, 1}, 0.001, false, 0.6},
	{"1 s", 4, 0.01, 0.04, 0.1, 1, 0.5, false, {0.5, 2}, 0.001, false, 2},
	{"5 to 80 ms, all compute, 2 s", 5, 0.005, 0.08, 0.1, 2, 0, false, {0.5, 2}, 0.001, false, 0.5},
	{"5 to 80 ms, 2 s, 100 ms counter", 5, 0.005, 0.08, 0.1, 2, 0.5, false, {0.5, 2}, 0.1, false, 2},
	{"2 to 10 ms", 5, 0.002, 0.01, 0.1, 10, 0.5, false, {0.5, 2}, 0.001, false, 1.2},
	{"50 to 300 ms", 4, 0.05, 0.3, 0.3, 20, 0.5, false, {0.5, 2}, 0.001, false, 0.2},
	{"0.3 to 2 s", 4, 0.3, 2, 0.3, 40, 0.5, false, {0.5, 2}, 0.001, false, 0.15},
};
// clang-format on

static void check(void **state)
{
	static struct program p;
	static struct tally tally;
	p.kind = *state;
	tally.n = tally.inside = 0;
	for (int i = 0; i < SEEDS * RUNS; i++) {
		struct findings findings;
		if (i % RUNS == 0) // lowest of twenty coverages from before the error of shares was known
			p.random = seeds[i / RUNS] * UINT64_C(0x9e3779b97f4a7c15);
		build_run(&p.run, SAMPLES_MAX);
		p.run.spans = arena_alloc(p.run.arena, CALLS_MAX, sizeof(*p.run.spans));
		make_blocks(&p);
		run_program(&p);
		record(&p);
		assert_int_equal(findings_make(&p.run, &findings), 0);
		double all_j = 0;
		for (size_t b = 0; b < p.kind->n_blocks; b++)
			all_j += p.true_j[b] / (double)p.kind->n_blocks;
		for (size_t k = 0; k < findings.n_blocks && all_j > 0; k++) {
			size_t b = (size_t)(findings.blocks[k].name[0] - 'a');
			note_block(&tally, &findings.blocks[k], p.true_j[b], all_j);
		}
		findings_finish(&findings);
		build_finish(&p.run);
	}
	judge(&tally, p.kind);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "blocks of all kinds: the interval contains the true energy for 95 %", all_kinds);
	return rows_run(&tests, "block_truth");
}
