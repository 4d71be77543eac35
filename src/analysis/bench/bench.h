/* Repeated runs of several commands as estimates and comparisons. Pure; the method is told in docs/bench.md. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_quantity { BENCH_TIME, BENCH_ENERGY, BENCH_POWER, BENCH_TARGET_ENERGY, BENCH_QUANTITIES };
extern const char *const bench_quantity_names[]; // "time_s" …: the key in JSON; NULL-terminated

/* What was measured: for each command and quantity one value a run, NaN where it could not be had. */
struct bench_series {
	const double *values[BENCH_QUANTITIES];
	size_t n;
};

struct bench_estimate {
	size_t n;                 // runs in which it is known
	double median, low, high; // 95 % interval; NaN: not known, low and high from two runs on
	double confidence;        // of the interval: less than 0.95 for fewer than 6 runs
};

struct bench_comparison {
	size_t a, b; // commands; the ratio is b / a
	enum bench_quantity quantity;
	double ratio, low, high;
	double p, p_adjusted; // Mann-Whitney; Holm's correction over the comparisons of the quantity
	bool different;       // p_adjusted < 0.05, and 1 lies outside of low … high
	double smallest_effect_percent;
};

struct bench_findings {
	struct bench_estimate (*estimates)[BENCH_QUANTITIES]; // of each command
	size_t n_commands;
	struct bench_comparison *comparisons; // by quantity; of those only which both commands have a value of
	size_t n_comparisons;
	struct arena *arena; // owns the arrays
};

// all_pairs: else each command is compared with the first. -ENOMEM.
int bench_analyse(const struct bench_series *series, size_t n_commands, bool all_pairs, uint64_t seed,
	struct bench_findings *ret_findings);
void bench_findings_finish(struct bench_findings *findings);

/* Half of the widest interval of the commands, in percent of the median: of energy, of time where any command's energy
 * is not known. INFINITY: no interval yet. -ENOMEM. */
int bench_width_percent(const struct bench_series *series, size_t n_commands, uint64_t seed, double *ret_percent);
