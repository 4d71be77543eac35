/* Estimates and comparisons from repeated runs of several commands. Pure; docs/bench.md describes the method. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_quantity { BENCH_TIME, BENCH_ENERGY, BENCH_POWER, BENCH_TARGET_ENERGY, BENCH_QUANTITIES };
extern const char *const bench_quantity_names[]; // JSON keys "time_s" …; NULL-terminated

/* Measurements of one command: for each quantity one value per run, NaN if it is unknown. */
struct bench_series {
	const double *values[BENCH_QUANTITIES];
	size_t n;
};

struct bench_estimate {
	size_t n;                 // number of runs with a known value
	double median, low, high; // 95 % interval; NaN: unknown; low and high need two runs
	double confidence;        // confidence level of the interval: less than 0.95 for fewer than 6 runs
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
	struct bench_estimate (*estimates)[BENCH_QUANTITIES]; // per command
	size_t n_commands;
	struct bench_comparison *comparisons; // grouped by quantity; only pairs in which both commands have values
	size_t n_comparisons;
	struct arena *arena; // owns the arrays
};

// all_pairs: compare each pair of commands, else each command with the first. -ENOMEM.
int bench_analyse(const struct bench_series *series, size_t n_commands, bool all_pairs, uint64_t seed,
	struct bench_findings *ret_findings);
void bench_findings_finish(struct bench_findings *findings);

/* Half width of the widest interval of the commands, in percent of the median: of energy, or of time if any command's
 * energy is unknown. INFINITY: no interval yet. -ENOMEM. */
int bench_width_percent(const struct bench_series *series, size_t n_commands, uint64_t seed, double *ret_percent);
