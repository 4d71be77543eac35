/* Results of `wattle bench` as text and as JSON (schema wattle-bench/1). Pure. */
#pragma once

#include "analysis/bench/bench.h"
#include "base/buf.h"

struct object_type; // base/fields.h

struct bench_command {
	const char *text; // quoted for a shell
	char *const *argv;
	char *const *shown; // argv with secrets redacted, for text and JSON output
	double error_j; // measurement error of energy_j besides the scatter: median over the runs; NaN: unknown
	size_t failures;
};

struct bench_stability {
	bool possible;      // a temperature or a power is readable
	double limit_s;     // maximum wait per run; NaN: the duration of the previous run, at most 10 s
	double reference_w; // before the first run; NaN: unknown
	double reference_c; // before the first run; NaN: unknown
	double waited_s;    // total waiting time
	size_t unsettled;   // runs started although the machine was still warmer or busier than before
};

enum bench_end { BENCH_ALL_RUNS, BENCH_NARROW_ENOUGH, BENCH_MAX_RUNS, BENCH_INTERRUPTED, BENCH_FAILED };

struct bench_result {
	struct bench_findings findings;
	struct bench_series *series; // findings.n_commands entries, like commands
	struct bench_command *commands;
	size_t rounds, warmup;
	uint64_t seed;
	enum bench_end end;
	double until_percent, width_percent; // NaN: not requested
	double elapsed_s;
	bool all_pairs;
	const char *provenance; // of the energy; NULL: unknown
	const char *meter;      // "package-0 (powercap), gpu-0 (nvml)"
	struct bench_stability stability;
};

extern const struct object_type bench_type, bench_command_type; // struct bench_result, struct bench_command
void bench_json(const struct bench_result *result, struct buf *out);
void bench_text(const struct bench_result *result, struct buf *out, bool colour); // at most 80 columns
