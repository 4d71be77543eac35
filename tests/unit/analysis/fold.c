/* Simulated programs that run short blocks in a loop on a slow counter: what folding makes of the powers, and whether its
 * errors hold. Each row is a number of seeded runs; it prints the largest error of a power, the part of the blocks whose
 * truth lies inside, and the middle of the stated errors. Goals are met with room, so that a change for the worse fails. */
#include "loop.h"

static const double any = INFINITY;

static const struct row {
	const char *teaches;
	struct loop_kind kind;
	int seeds;
	double worst;      // largest error of a block's power, of the true power
	double inside;     // part of the blocks that must lie inside their error
	double error[2];   // the middle of the stated errors, of the power, lies between
} rows[] = {
	{"20 blocks of 0.2 to 5 ms, 100 ms counter, 60 s: within 10 %", {.length_s = 60}, 5, 0.1, 0.93, {0, 0.02}},
	{"a counter whose period is no whole number of looks", {.period_s = 0.09766}, 3, 0.1, 0.93, {0, 0.02}},
	{"20 ms counter", {.period_s = 0.02}, 3, 0.1, 0.93, {0, 0.02}},
	{"calls that hardly vary", {.vary_s = 0.02}, 4, 0.25, 0.9, {0, 0.03}},
	{"steps of 15 mJ", {.quantum_j = 0.015}, 3, 0.5, 0.93, {0, 0.1}},
	{"two threads share the power", {.threads = true}, 2, 0.1, 0.93, {0, 0.02}},
	{"powers rise from 95 to 105 %", {.drift_w = 0.05}, 3, 0.5, 0.93, {0, 0.15}},
	{"calls differ in power by 10 %: much noise, large errors", {.vary_w = 0.1}, 4, any, 0.9, {0.1, 3}},
	{"updates come up to 1 ms early or late: large errors", {.jitter_s = 1e-3}, 4, any, 0.9, {0.1, 2}},
	{"updates come up to 5 ms early or late: nearly nothing is resolved", {.jitter_s = 5e-3}, 4, any, 0.9, {0.3, 4}},
	{"all of that at once", {.jitter_s = 1e-3, .vary_w = 0.1, .drift_w = 0.05}, 3, any, 0.9, {0.1, 4}},
	{"no quick looks, period not known", {.samples_only = true}, 4, any, 0.9, {0, 1}},
	{"1 ms counter: each reading is up to 1 ms old", {.period_s = 0.000976}, 3, any, 0.9, {0.01, 1}},
	{"in lockstep with the counter: nothing tells the blocks apart",
		{.loop_s = 0.05, .vary_s = -1, .period_off = -1}, 3, any, 0.93, {1, 5}},
	{"blocks of 5 ms to 1 s beside each other", {.n_blocks = 8, .least_s = 5e-3, .most_s = 1}, 4, any, 0.85, {0, 0.1}},
};

// Fills in what a row leaves out; a negative number stands for 0.
static struct loop_kind complete(struct loop_kind kind)
{
	const struct {
		double *value, usual;
	} fields[] = {
		{&kind.least_s, 2e-4},
		{&kind.most_s, 5e-3},
		{&kind.vary_s, 0.1},
		{&kind.length_s, 30},
		{&kind.period_s, 0.1},
		{&kind.period_off, 5e-5},
		{&kind.quantum_j, 1e-3},
		{&kind.late_s, 2e-4},
	};
	kind.n_blocks = kind.n_blocks > 0 ? kind.n_blocks : 20;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (*fields[i].value == 0)
			*fields[i].value = fields[i].usual;
		else if (*fields[i].value < 0)
			*fields[i].value = 0;
	return kind;
}

struct tally {
	size_t n, inside;
	double worst, error[1024];
};

static void note(struct tally *tally, const struct loop *loop, size_t column)
{
	double true_w = loop->true_j[column] / loop->time_s[column];
	double off_w = fabs(loop->fold.columns[column].power_w - true_w), error_w = loop->fold.columns[column].error_w;
	tally->worst = fmax(tally->worst, off_w / true_w);
	tally->inside += off_w <= error_w;
	tally->error[tally->n++] = error_w / true_w;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// Each joule of the target is some block's.
static void check_sum(const struct loop *loop)
{
	uint32_t all[LOOP_BLOCKS_MAX];
	double sum_j = 0, target_j = loop->findings.ledger.target_j;
	for (uint32_t c = 0; c < loop->n_columns; c++) {
		all[c] = c;
		sum_j += fold_energy_of(&loop->fold, &c, 1).j;
	}
	struct fold_energy energy = fold_energy_of(&loop->fold, all, loop->n_columns);
	assert_true(fabs(sum_j - target_j) <= 1e-9 * target_j);
	assert_true(fabs(energy.j - target_j) <= 1e-9 * target_j);
	assert_true(energy.error_j <= 2 * loop->findings.target_error_j + 1e-3); // powers only move it from block to block
}

static void check(void **state)
{
	const struct row *row = *state;
	const struct loop_kind kind = complete(row->kind);
	static struct loop loop;
	struct tally tally = {0};
	for (int seed = 1; seed <= row->seeds; seed++) {
		assert_int_equal(loop_simulate(&loop, &kind, (uint64_t)seed), 0);
		check_sum(&loop);
		for (size_t c = 1; c < loop.n_columns; c++)
			note(&tally, &loop, c);
		loop_finish(&loop);
	}
	qsort(tally.error, tally.n, sizeof(double), by_value);
	double inside = (double)tally.inside / (double)tally.n, error = tally.error[tally.n / 2];
	print_message("# %s: at most %.1f %% off, %.1f %% inside, error %.2f %%\n", row->teaches, tally.worst * 100,
		inside * 100, error * 100);
	assert_true(tally.worst <= row->worst);
	assert_true(inside >= row->inside);
	assert_true(error >= row->error[0] && error <= row->error[1]);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "fold");
}
