/* folding SEEDS: simulated runs of 20 blocks of 0.2 to 5 ms in a loop, 60 s on a 100 ms counter, and their
 * deconvolved powers: {"seeds", "blocks", "inside", "worst", "worst_of_seed": […]}, errors relative to the true
 * power. */
#include "loop.h"

static const struct loop_kind kind = {.n_blocks = 20,
	.min_s = 2e-4,
	.max_s = 5e-3,
	.vary_s = 0.1,
	.length_s = 60,
	.period_s = 0.1,
	.period_off = 5e-5,
	.quantum_j = 1e-3,
	.late_s = 2e-4};

struct totals {
	size_t blocks, inside;
	double worst;
};

static double note(const struct loop *loop, struct totals *tally)
{
	double worst = 0;
	for (size_t c = 1; c < loop->n_columns; c++) {
		double true_w = loop->true_j[c] / loop->time_s[c];
		double off_w = fabs(loop->fold.columns[c].power_w - true_w);
		tally->blocks++;
		tally->inside += off_w <= loop->fold.columns[c].error_w;
		worst = fmax(worst, off_w / true_w);
	}
	tally->worst = fmax(tally->worst, worst);
	return worst;
}

int main(int argc, char **argv)
{
	static struct loop loop;
	struct totals tally = {0};
	int seeds = argc > 1 ? atoi(argv[1]) : 20;
	printf("{\"worst_of_seed\": [");
	for (int seed = 1; seed <= seeds; seed++) {
		if (loop_simulate(&loop, &kind, (uint64_t)seed) < 0)
			return 1;
		printf("%s%.5f", seed > 1 ? ", " : "", note(&loop, &tally));
		loop_finish(&loop);
	}
	printf("], \"seeds\": %d, \"blocks\": %zu, \"inside\": %zu, \"worst\": %.5f}\n", seeds, tally.blocks,
		tally.inside, tally.worst);
	return 0;
}
