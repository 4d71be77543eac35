/* All figures of a report as numbers, before they become text or JSON. Pure: struct run in, findings out, no file, no
 * clock. Unknown doubles are NaN, unknown integers VALUE_MISSING. */
#pragma once

#include "analysis/column.h"
#include "base/arena.h"
#include "store/run.h"

#include <stdbool.h>
#include <stdint.h>

struct ledger { // each joule of total_j is in exactly one row; the rows add up to it. idle_j NaN: idle energy is in the
		// other rows
	double target_j, others_j, wattle_j, idle_j, unattributed_j;
};

struct domain_finding {
	const struct run_device *device;
	enum provenance provenance;
	double energy_j, error_j, mean_w, max_w; // NaN unknown
	double calibration_error_j; // calibration error of energy_j, separate from error_j; NaN: no specification is
				    // known (all but GPUs)
	struct ledger ledger;       // of this domain; all NaN when energy_j is
	const char *attribution;    // "cpu time", "pss", "rss", "sm time", "mig slices", "gpu memory", "exclusive",
				    // "idle", "none"; also the baseline that was subtracted, if any
	double target_error_j;      // of ledger.target_j: its share of error_j, and the error of the attribution
	double update_period_s, update_jitter_s;
	double integrated_j, integrated_error_j; // energy integrated from power readings, if a counter's domain has those too
	bool disagrees;                          // counter and integrated power differ by more than both errors explain
	double stalled_s;                        // time in which the counter stood still although updates were due
	bool unseen;                             // the run was too short for the counter to advance
#define DEVICE_MAX(id, member, ...) double member; // maximum over the run
#include "metric/metrics.def"
	double idle_w; // idle power: subtracted, or stored; NaN unknown
	int64_t wraps, gaps;
	bool in_total;
};

struct stats { // over samples
	double last, min, max, mean;
	int64_t count;
};

struct user_metric_finding { // custom metric that the program reported: accuracy, tokens
	const char *name;
	struct stats stats;
};

struct gpu_finding {
	const struct run_device *device;
	double energy_j, error_j, calibration_error_j, mean_w, max_w;
	int64_t max_memory_bytes, target_max_memory_bytes;
#define DEVICE_MEAN(id, member, ...) double member; // mean over time
#define DEVICE_MAX(id, member, ...) double member;
#include "metric/metrics.def"
	double throttled_s, cap_w;
};

/* gpu_tracker's ResourceUsage, in bytes, percent and seconds; report/ converts to the requested units. */
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

struct block_unit { // unit of work done by a block: a metric of whole numbers, reported while the block was open
	const char *name;
	int64_t count;                       // number of reports
	double sum;                          // of all reports
	double j_per_unit, error_j_per_unit; // NaN: not a unit of work (a fraction, a negative value), or no energy
};

enum block_method {         // method that separates a block's energy from its surroundings
	BLOCK_INTERPOLATED, // linear interpolation between counter updates
	BLOCK_FOLDED,       // many calls shorter than the counter's period: least squares over all periods (deconvolve.h)
	BLOCK_NO_ENERGY
};

// Whether an energy can be distinguished from its surroundings. Reports mark those that can't: human_error_of.
static inline bool is_resolved(double value, double error)
{
	return error < fabs(value);
}

struct block_finding { // one code block: all spans of one name
	const char *name;
/* One member per row of blocks.def. self_j: threads that overlap share it; the sum over all blocks and the time outside
 * of them is the target's energy. */
#define BLOCK_COUNT(member, ...) int64_t member;
#define BLOCK_FIGURE(member, ...) double member;
#define BLOCK_TIME(...)
#include "metric/blocks.def"
	struct value_stats compute_time_s;
	struct value_stats columns[TRACKING_METRICS]; // over the samples inside the block; NaN if no sample has a value
	enum block_method method;
	bool resolved;            // is_resolved
	double *domain_j;         // findings.n_domains of them
	struct block_unit *units; // n_units of them, by name
	size_t n_units;
};

enum { STACK_NONE = UINT32_MAX };
enum { STACK_DEPTH_MAX = 1024 }; // nesting limit of blocks; the block at the limit includes deeper ones

struct stack_finding {              // a block and its enclosing blocks; the outermost entry is a process
	uint32_t parent;            // index of the enclosing stack, which precedes this one; STACK_NONE: a process
	const char *name;           // of the block, or of the process
	double self_j, self_time_s; // while this was the innermost block; over all stacks the sums equal those of the
				    // blocks' self_j
};

/* Update times of a counter, inferred from the code blocks of one run. Other runs that read the same counter reuse them
 * instead of searching again. */
struct counter_update_phase {
	int searches;      // number of runs that searched for the update times
	bool known;
	bool regular;      // updates lie on a regular grid …
	int64_t update_ns; // … that contains this instant
	double period_s;
	double part, blur_s; // as in struct deconvolve_timing
};

struct findings {
	const struct run *run;
	struct counter_update_phase *const
		*update_phases; // one per device in run->devices; NULL: no other run read these counters
	bool quick;        // made by findings_make_quick
	bool keeps_shares; // made by findings_make_for_charts
	double duration_s; // sum over segments
	bool complete;
	int64_t samples, lost_samples;

	double total_j, error_j;
	double target_error_j;                                  // of ledger.target_j
	double calibration_error_j, target_calibration_error_j; // in addition to error_j and target_error_j; NaN as in
								// struct domain_finding
	enum provenance provenance;
	struct ledger ledger;
	double pue, facility_j; // facility_j = total_j * pue; the ledger excludes the PUE overhead
	double carbon_intensity_g_per_kwh, carbon_g; // of facility_j; NaN: not given
	struct domain_finding *domains;
	size_t n_domains;

	const char *cpu_method;
	double target_cpu_s, main_cpu_s, descendants_cpu_s, task_clock_cpu_s;
	int64_t processes_seen, processes_sampled;

	int64_t rss_at_max_pss_bytes; // resident memory at the sample of max_pss_bytes; shows whether that sample was
				      // near the peak
	int64_t peak_rss_bytes, main_peak_rss_bytes, max_pss_bytes, max_uss_bytes, read_bytes, written_bytes,
		major_faults, minor_faults, voluntary_switches, involuntary_switches;

	struct gpu_finding *gpus;
	size_t n_gpus;
	struct resource_usage usage;
	struct block_finding *blocks; // sorted by name
	size_t n_blocks;
	struct stack_finding *stacks;
	size_t n_stacks;
	double outside_j, outside_error_j;        // part of ledger.target_j while no span was open; NaN without spans
	struct value_stats overall[TRACKING_METRICS]; // over all samples
	struct stats run_metrics[RUN_COUNT];
	struct user_metric_finding *user_metrics; // sorted by name
	size_t n_user_metrics;

	double self_cpu_s, self_cpu_percent, self_energy_j;
	int64_t self_max_rss_bytes, self_wakeups;

	/* Energies over time, which charts, traces and spans reuse: about 100 bytes per window of 0.1 s, and as many
	 * again per domain. findings_drop_times frees them before the rest. */
	const struct windows *windows;
	const struct metering *metering; // same index as domains
	struct arena *times_arena;       // owns both

	struct arena *arena; // owns everything that these findings point to, except run
};

// Returns 0 or -ENOMEM. `run` must outlive the findings.
int findings_make(const struct run *run, struct findings *ret_findings);
// As findings_make, but keeps 17 bytes per window and domain that charts_make would compute again, twice.
int findings_make_for_charts(const struct run *run, struct findings *ret_findings);
/* Faster variant for one of many runs, and for readings that are far apart. Energies of code blocks are interpolated
 * linearly between readings, however short the blocks are; none is deconvolved. */
int findings_make_quick(const struct run *run, struct findings *ret_findings);
// As findings_make, for one of several runs on one machine: the update times of counters are shared among them.
int findings_make_one_of(const struct run *run, struct counter_update_phase *const *update_phases,
	struct findings *ret_findings);
// Frees the energies over time. Charts, traces and energies of single spans can't be made afterwards; all figures stay.
void findings_drop_times(struct findings *findings);
void findings_finish(struct findings *findings);
/* Mean power while the sensors were read. That can be less than the run's duration, for example if a rank takes over
 * the sensors from another rank or a meter is unavailable for a while; energy divided by the run's duration would then
 * be too low. NaN unknown. */
struct mean_power {
	double total_w, target_w;
	double error_w; // of total_w: half of a 95 % interval
	bool of_part; // some sensors were not read during the whole run
};
struct mean_power findings_mean_power(const struct findings *findings);
// Calibration error of a block's total_j, in addition to its error_j; NaN as in struct domain_finding.
double findings_block_calibration_j(const struct findings *findings, const struct block_finding *block);
uint32_t findings_block(const struct findings *findings, const char *name); // index of the block; UINT32_MAX: not found

/* Functions of a profiled run (--profile). Each sample stands for CPU time of one thread. The energy of the domains that are
 * divided by CPU time is divided among the samples of the target, interval by interval; the energy that no sample covers, and
 * that of memory and GPUs, has a row of its own. */
struct function_finding {
	const char *name, *module; // name: "[module+0xoffset]" if unknown; module: NULL for a row without code
	const char *file;          // source file and line; NULL and VALUE_MISSING: unknown
	int64_t line;
	int64_t self_samples, total_samples; // total: including called functions, recursive calls once
	double self_cpu_s, total_cpu_s;
	double self_j, self_error_j, total_j, total_error_j; // NaN unknown
	bool resolved;                                      // is_resolved, of total_j
};
struct call_finding {    // a function with its callers
	uint32_t parent; // index of the caller, which precedes it; STACK_NONE: none
	uint32_t function;
	int64_t self_samples, total_samples;
	double self_cpu_s, total_cpu_s, self_j, total_j;
};
struct functions_finding {
	const char *event;
	int64_t hz, samples, lost;
	double total_j, target_j, others_j, idle_j, unattributed_j; // others_j includes wattle
	struct function_finding *functions; // descending by self_j, or by self_cpu_s where energy is unknown
	size_t n_functions;
	struct call_finding *calls;
	size_t n_calls;
};
struct function_names { // which function a node of the profile is in
	const char **names, **modules; // n functions
	size_t n;
	uint32_t *of_node;
};
// Pure; everything is in the arena. The findings need their times (findings_drop_times). -ENOMEM.
int functions_make(const struct findings *findings, const struct run_profile_data *profile,
	const struct function_names *names, struct arena *arena, struct functions_finding *ret_functions);
