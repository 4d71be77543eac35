/* What a run has to say, as numbers: everything of the report before it becomes text or JSON.
 * Pure: struct run in, findings out, no file, no clock. Unknown doubles are NaN, unknown integers VALUE_MISSING. */
#pragma once

#include "analysis/column.h"
#include "base/arena.h"
#include "store/run.h"

#include <stdbool.h>
#include <stdint.h>

struct ledger { // each joule of total_j in exactly one row; the rows add up to it. idle_j NaN: in the other rows
	double target_j, others_j, wattle_j, idle_j, unattributed_j;
};

struct domain_finding {
	const struct run_device *device;
	enum provenance provenance;
	double energy_j, error_j, mean_w, max_w; // NaN unknown
	double calibration_error_j; // of energy_j, beside error_j; NaN: no statement is known (all but GPUs)
	struct ledger ledger;       // of this domain; all NaN when energy_j is
	const char *attribution;    // "cpu time", "pss", "rss", "sm time", "mig slices", "gpu memory",
				    // "exclusive", "idle", "none"; what took off idle power says so
	double target_error_j;      // of ledger.target_j: its part of error_j, and the attribution's own
	double update_period_s, update_jitter_s;
	double integrated_j, integrated_error_j; // a counter's domain whose power was read too: that, integrated
	bool disagrees;                          // the two are further apart than both errors explain
	double stalled_s;                        // the counter stood still when it should have moved
	bool unseen;                             // the run was too short for the counter to move
#define DEVICE_MAX(id, member, ...) double member; // over the run
#include "metric/metrics.def"
	double idle_w; // the idle power that was taken off, or is stored; NaN unknown
	int64_t wraps, gaps;
	bool in_total;
};

struct stats { // over samples
	double last, min, max, mean;
	int64_t count;
};

struct user_metric_finding { // what the program itself told: accuracy, tokens
	const char *name;
	struct stats stats;
};

struct gpu_finding {
	const struct run_device *device;
	double energy_j, error_j, calibration_error_j, mean_w, max_w;
	int64_t max_memory_bytes, target_max_memory_bytes;
#define DEVICE_MEAN(id, member, ...) double member; // over time
#define DEVICE_MAX(id, member, ...) double member;
#include "metric/metrics.def"
	double throttled_s, cap_w;
};

/* gpu_tracker's ResourceUsage, in bytes, percent and seconds; report/ converts to the units asked. */
struct rss_values {
	double total_bytes, private_bytes, shared_bytes;
};
struct unit_percentages {
	double max_sum, max_hardware, mean_sum, mean_hardware;
};
struct resource_usage {
	double ram_capacity_bytes, ram_system_bytes;
	struct rss_values main, descendants, combined;
	double gpu_ram_capacity_bytes, gpu_ram_system_bytes, gpu_ram_main_bytes, gpu_ram_descendants_bytes,
		gpu_ram_combined_bytes;
	int64_t system_core_count, expected_cores;
	struct unit_percentages cpu_system, cpu_main, cpu_descendants, cpu_combined;
	int64_t main_threads, descendants_threads, combined_threads;
	int64_t system_gpu_count, expected_gpus;
	struct unit_percentages gpu;
	double compute_time_s;
};

struct value_stats {
	double min, max, mean, std, total; // std: of the population
};

struct block_unit { // work that a block did: a metric of whole numbers, reported inside it
	const char *name;
	int64_t count;                       // how often it was reported
	double sum;                          // of all reports
	double j_per_unit, error_j_per_unit; // NaN: not a unit of work (a fraction, a negative value), or no energy
};

enum block_method {         // how the energy of a block was told from its surroundings
	BLOCK_INTERPOLATED, // between updates of the counters, along the straight line
	BLOCK_FOLDED,       // many calls shorter than the counter's period: least squares over all periods (fold.h)
	BLOCK_NO_ENERGY
};

struct block_finding { // one code block: a span's name over all its calls
	const char *name;
/* A member for each row. self_j: where threads overlap, shared by them; over all blocks and what lies outside of them this adds up to the
 * target's energy. */
#define BLOCK_COUNT(member, ...) int64_t member;
#define BLOCK_FIGURE(member, ...) double member;
#define BLOCK_TIME(...)
#include "metric/blocks.def"
	struct value_stats compute_time_s;
	struct value_stats columns[TRACKING_METRICS]; // over the samples inside the block; NaN if none knows the column
	enum block_method method;
	bool resolved;            // the error is smaller than the energy
	double *domain_j;         // findings.n_domains of them
	struct block_unit *units; // n_units of them, by name
	size_t n_units;
};

enum { STACK_NONE = UINT32_MAX };
enum { STACK_DEPTH_MAX = 1024 }; // blocks inside each other; what lies deeper is the last one's

struct stack_finding {              // a block inside others; the outermost one is a process
	uint32_t parent;            // index of the stack around it, which stands before it; STACK_NONE: a process
	const char *name;           // of the block, or of the process
	double self_j, self_time_s; // while this was the innermost one; over all they add up as self_j of the blocks
};

/* When a counter is updated, as the code blocks of one run have told: for other runs that it was read for, which would have to search
 * for the same. */
struct counter_rhythm {
	int searches;      // how many runs have searched for it
	bool known;
	bool regular;      // it keeps to a grid …
	int64_t update_ns; // … with this instant
	double period_s;
	double part, blur_s; // as struct fold_timing
};

struct findings {
	const struct run *run;
	struct counter_rhythm *const *rhythms; // of run->devices; NULL: nobody else has read them
	bool quick; // by findings_make_quick
	double duration_s; // sum over segments
	bool complete;
	int64_t samples, lost_samples;

	double total_j, error_j;
	double target_error_j;                                  // of ledger.target_j
	double calibration_error_j, target_calibration_error_j; // beside those; NaN as in struct domain_finding
	enum provenance provenance;
	struct ledger ledger;
	double pue, facility_j, carbon_g; // facility_j = total_j * pue; the ledger is without it
	struct domain_finding *domains;
	size_t n_domains;

	const char *cpu_method;
	double target_cpu_s, main_cpu_s, descendants_cpu_s, referee_cpu_s;
	int64_t processes_seen, processes_sampled;

	int64_t rss_at_max_pss_bytes; // resident memory at the sample of max_pss_bytes: was it near the peak?
	int64_t peak_rss_bytes, main_peak_rss_bytes, max_pss_bytes, max_uss_bytes, read_bytes, written_bytes,
		major_faults, minor_faults, voluntary_switches, involuntary_switches;

	struct gpu_finding *gpus;
	size_t n_gpus;
	struct resource_usage usage;
	struct block_finding *blocks; // sorted by name
	size_t n_blocks;
	struct stack_finding *stacks;
	size_t n_stacks;
	double outside_j, outside_error_j;        // of ledger.target_j: while no span was open; NaN without spans
	struct value_stats overall[TRACKING_METRICS]; // over all samples
	struct stats run_metrics[RUN_COUNT];
	struct user_metric_finding *user_metrics; // sorted by name
	size_t n_user_metrics;

	double self_cpu_s, self_cpu_percent, self_energy_j;
	int64_t self_max_rss_bytes, self_wakeups;

	/* The energies along the time, for charts, traces and spans, which would have to make them anew: some 100 bytes for a window
	 * of a tenth of a second, and again for each domain. findings_forget_times drops them sooner than the rest. */
	const struct windows *windows;
	const struct metering *metering; // as domains
	struct arena *times_arena;       // owns both

	struct arena *arena; // owns what is pointed to here, but for run
};

// -ENOMEM only. `run` must outlive the findings.
int findings_make(const struct run *run, struct findings *ret_findings);
/* The same sooner, for one of many and of readings that are far apart: energies of code blocks are taken from the straight line between
 * readings, however short the blocks are; none is folded. */
int findings_make_quick(const struct run *run, struct findings *ret_findings);
// The same as findings_make for one of several runs on one machine: what it finds out about counters is kept for the others.
int findings_make_one_of(const struct run *run, struct counter_rhythm *const *rhythms, struct findings *ret_findings);
// Afterwards no charts, traces or energies of single spans can be made of them; all figures stay.
void findings_forget_times(struct findings *findings);
void findings_finish(struct findings *findings);
/* Mean power while the sensors were read, which may be a part of the run's time only: a rank takes them over from another one, a meter is
 * away for a while. Energy over the run's whole time would be too little then. NaN unknown. */
struct mean_power {
	double total_w, target_w;
	bool of_part; // some of them were not read all the time
};
struct mean_power findings_mean_power(const struct findings *findings);
// Of a block's total_j, beside its error_j; NaN as in struct domain_finding.
double findings_block_calibration_j(const struct findings *findings, const struct block_finding *block);
uint32_t findings_block(const struct findings *findings, const char *name); // its index; UINT32_MAX: there is none
