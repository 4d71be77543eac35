/* What `wattle bench` found, as text and as JSON (schema wattle-bench/1). Pure. */
#pragma once

#include "analysis/bench/bench.h"
#include "base/buf.h"

struct object_type; // base/fields.h

struct bench_command {
	const char *text; // as a shell would take it
	char *const *argv;
	char *const *shown; // argv without secrets: what text and JSON have
	double error_j; // of energy_j, which the meter has beside the scatter: the median over the runs; NaN unknown
	size_t failures;
};

struct bench_settling {
	bool possible;      // a temperature or a power could be read
	double limit_s;     // per run; NaN: as long as the run before took, at most 10 s
	double reference_w; // before the first run; NaN unknown
	double reference_c; // likewise
	double waited_s;    // in all
	size_t unsettled;   // runs that began although the machine was still warmer or busier
};

enum bench_end { BENCH_ALL_RUNS, BENCH_NARROW_ENOUGH, BENCH_MOST_RUNS, BENCH_INTERRUPTED, BENCH_FAILED };

struct bench_result {
	struct bench_findings findings;
	struct bench_series *series; // findings.n_commands of them, and of the commands
	struct bench_command *commands;
	size_t rounds, warmup;
	uint64_t seed;
	enum bench_end end;
	double until_percent, width_percent; // NaN: not asked for
	double elapsed_s;
	bool all_pairs;
	const char *provenance; // of the energy; NULL: none is known
	const char *meter;      // "package-0 (powercap), gpu-0 (nvml)"
	struct bench_settling settling;
};

extern const struct object_type bench_type; // struct bench_result
void bench_json(const struct bench_result *result, struct buf *out);
void bench_text(const struct bench_result *result, struct buf *out, bool colour); // at most 80 columns wide
