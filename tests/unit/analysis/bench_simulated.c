/* Accuracy of the bench: runs are drawn from known distributions, compared, and judged by the true values. */
#include "analysis/bench/bench.h"
#include "base/rng.h"

#include "rows.h"

#include <math.h>
#include <string.h>

enum { SIMULATIONS_MAX = 300, RUNS_MAX = 30, COMMANDS_MAX = 4 };

static double uniform(struct rng *rng)
{
	return ((double)(rng_next(rng) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct rng *rng)
{
	double radius = sqrt(-2 * log(uniform(rng)));
	return radius * cos(2 * M_PI * uniform(rng));
}

/* Each distribution has the median 1. */
static double even(struct rng *rng)
{
	return 1 + 0.02 * normal(rng);
}

// Occasional interference: times have a tail on one side.
static double skewed(struct rng *rng)
{
	return 0.95 + 0.05 * -log(uniform(rng)) / M_LN2;
}

static double wide(struct rng *rng)
{
	return exp(0.3 * normal(rng));
}

// A coarse counter: most values occur several times.
static double coarse(struct rng *rng)
{
	return round((1 + 0.02 * normal(rng)) * 100) / 100;
}

struct bed {
	double values[COMMANDS_MAX][BENCH_QUANTITIES][RUNS_MAX];
	struct bench_series series[COMMANDS_MAX];
	size_t n_commands;
};

// Time only; command k takes effect^k times as long.
static void simulate(struct bed *bed, double (*draw)(struct rng *rng), size_t n_commands, size_t n, double effect,
	struct rng *rng)
{
	bed->n_commands = n_commands;
	for (size_t c = 0; c < n_commands; c++) {
		bed->series[c].n = n;
		for (size_t q = 0; q < BENCH_QUANTITIES; q++) {
			bed->series[c].values[q] = bed->values[c][q];
			for (size_t i = 0; i < n; i++)
				bed->values[c][q][i] = q == BENCH_TIME ? draw(rng) * pow(effect, (double)c) : NAN;
		}
	}
}

static const struct simulation_row {
	const char *teaches;
	double (*draw)(struct rng *rng);
	size_t n, n_commands;
	uint64_t simulations;
	double min_coverage;    // coverage of the median's interval; 95 % less what chance and few runs take
	double max_false_finds; // of 5 %, plus what chance adds
} rows[] = {
	{"5 runs each, scattering by 2 %", even, 5, 2, 300, 0.91, 0.07},
	{"10 runs each", even, 10, 2, 150, 0.91, 0.075},
	{"30 runs each", even, 30, 2, 100, 0.88, 0.10},
	{"5 runs with a long tail", skewed, 5, 2, 300, 0.91, 0.07},
	{"10 runs with a long tail", skewed, 10, 2, 150, 0.91, 0.075},
	{"30 runs with a long tail", skewed, 30, 2, 100, 0.88, 0.10},
	{"10 runs, scattering by 30 %", wide, 10, 2, 150, 0.91, 0.075},
	{"10 runs with many equal values", coarse, 10, 2, 150, 0.91, 0.075},
	{"10 runs of four commands: a false positive in any of three comparisons counts", even, 10, 4, 150, 0.91, 0.09},
};

struct tallies {
	double covered, ratio_covered, found, any_found, smallest[SIMULATIONS_MAX];
	size_t n_smallest;
};

static void bench_once(const struct simulation_row *row, double effect, uint64_t seed, struct tallies *tallies)
{
	struct bed bed;
	struct rng rng = rng_init(seed, 1);
	struct bench_findings findings;
	simulate(&bed, row->draw, row->n_commands, row->n, effect, &rng);
	assert_int_equal(bench_analyse(bed.series, row->n_commands, false, seed, &findings), 0);
	assert_int_equal(findings.n_comparisons, row->n_commands - 1);
	for (size_t c = 0; c < row->n_commands; c++) {
		const struct bench_estimate *e = &findings.estimates[c][BENCH_TIME];
		double truth = pow(effect, (double)c);
		tallies->covered += (e->low <= truth && truth <= e->high) / (double)row->n_commands;
	}
	bool any = false;
	for (size_t i = 0; i < findings.n_comparisons; i++)
		any = any || findings.comparisons[i].different;
	const struct bench_comparison *first = &findings.comparisons[0];
	tallies->any_found += any;
	tallies->found += first->different;
	tallies->ratio_covered += first->low <= effect && effect <= first->high;
	if (!isnan(first->smallest_effect_percent))
		tallies->smallest[tallies->n_smallest++] = first->smallest_effect_percent;
	bench_findings_finish(&findings);
}

static int by_value(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void bench_many(const struct simulation_row *row, double effect, struct tallies *tallies)
{
	memset(tallies, 0, sizeof(*tallies));
	for (uint64_t seed = 0; seed < row->simulations; seed++)
		bench_once(row, effect, seed, tallies);
	qsort(tallies->smallest, tallies->n_smallest, sizeof(tallies->smallest[0]), by_value);
}

// The difference that benches of equal commands report as detectable must be detected in four of five cases.
static void check(void **state)
{
	const struct simulation_row *row = *state;
	struct tallies same, other;
	double n = (double)row->simulations;
	bench_many(row, 1, &same);
	double smallest = same.smallest[same.n_smallest / 2];
	bench_many(row, 1 + smallest / 100, &other);
	printf("# %s: median inside %.1f %%, ratio %.1f %%; false finds %.1f %%; %.2f %% found in %.1f %%\n",
		row->teaches, 100 * same.covered / n, 100 * same.ratio_covered / n, 100 * same.any_found / n, smallest,
		100 * other.found / n);
	fflush(stdout);
	assert_true(same.covered / n >= row->min_coverage);
	assert_true(same.ratio_covered / n >= row->min_coverage);
	assert_true(same.any_found / n <= row->max_false_finds);
	assert_true(other.found / n >= 0.7 && other.found / n <= 0.9);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "bench_simulated");
}
