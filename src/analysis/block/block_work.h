/* Computation of code blocks: one walk over the begins and ends of all spans in order of time (block_sweep.c). This
 * header has its state; these files fill it:
 *
 *   block_sweep.c   open spans, by thread and nesting
 *   block_calls.c   per block: calls, time, and figures of the time in which at least one call is open
 *   block_shares.c  per block and stack: self time and energy
 *   block_units.c   per block: units of work reported inside it
 *   block_deconvolve.c    shares of the target's energy over time, for blocks shorter than a counter's update period
 *
 * Rules:
 *   - The innermost span of a thread is the open one that began last, whichever ends first.
 *   - Ranges (begun and ended by number, in any thread) enclose the nested spans of their process: the self time of each
 *     is the time in which no thread of its process is in a nested span.
 *   - At each instant the target's energy is divided evenly among the innermost spans of all threads and such ranges.
 *   - At one instant begins come first, then samples and metrics, then ends: both ends belong to a call. */
#pragma once

#include "analysis/block/deconvolve.h"
#include "analysis/block/paths.h"
#include "analysis/column.h"
#include "analysis/energy/checkpoints.h"
#include "analysis/names.h"
#include "analysis/stats.h"

enum { BLOCK_NONE = UINT32_MAX };

struct share { // part of the target's energy and time
	double j, ns;
	struct part_error *errors; // same index as findings.domains
};

struct block_work {
	struct tally time_s; // durations of the calls
	int64_t non_empty_calls, timepoints, unwound, cut;
	double active_ns, cpu_ns, cpu_unknown_ns, thread_cpu_ns;
	bool thread_cpu_known;
	uint32_t open;             // number of open calls …
	uint32_t since;            // … and the moment at which the first of them began
	uint32_t listed;           // index in open_blocks
	struct part_error *errors; // per domain, for the time in which it was open
	struct share self;
	struct tally *columns; // TRACKING_METRICS entries; NULL: no sample yet
};

struct interval { // interval during which a thread is in one span, or a process's ranges count their self time
	bool on;
	uint32_t since;     // moment
	double since_one_j; // value of work.one_j at that moment
};

struct work_thread {
	int32_t pid, tid;
	uint32_t process, top; // top: its innermost open span
	uint32_t listed;       // index in busy_threads
	struct interval interval;
};

struct work_process {
	int32_t pid;
	uint32_t root;            // path
	uint32_t threads, ranges; // threads in a nested span; number of open ranges
	uint32_t last_range;      // latest of the open ones
	struct interval interval; // interval of its ranges
	struct share share_of_ranges; // share of each of its ranges that was open all the time
};

struct open_span {
	int64_t end_ns;
	uint32_t span, block, path; // span: index in the run
	uint32_t thread;            // BLOCK_NONE for a range
	uint32_t process;
	uint32_t begun;        // sequence number of the span
	bool left;             // ends at this instant, and its thread is in another span already
	uint32_t below, above; // neighbours in its thread's stack; for a range, among the ranges of its process
	uint32_t next_free;
	double begin_j, begin_ns_share;  // for a range: process.had at its begin
	struct part_error *begin_errors; // owned by work.arena; stays with the entry
};

struct blocks_work {
	const struct findings *findings;
	const struct run *run;
	const struct columns *columns;
	struct arena *arena;
	struct names names; // names of the spans
	struct checkpoints checkpoints;

	struct block_work *blocks; // one per name
	uint32_t *open_blocks;     // n_open_blocks entries
	size_t n_open_blocks;

	struct keys thread_keys, process_keys;
	struct work_thread *threads;    // owned
	struct work_process *processes; // owned
	size_t threads_capacity, processes_capacity;

	struct open_span *open; // entries with a free list; owned
	size_t n_open, open_capacity;
	uint32_t free_open, begun;

	struct paths paths;
	struct names labels;  // of the run's processes, which are the roots of paths
	struct keys pids;     // pids of the run's processes, numbered …
	uint32_t *process_of; // … and the index of the process for each number

	uint32_t *busy_threads; // threads in a span, n_busy of them; owned
	size_t n_busy, busy_capacity;
	struct deconvolution { // pieces for the columns of a deconvolution: path + 1
		bool wanted;
		struct deconvolve_interval *pieces; // owned
		size_t n, capacity;
		int64_t complete_until_ns; // pieces are complete up to here
	} deconvolution;
	uint32_t active_count; // number of spans and ranges that share the target's energy now
	double one_j;        // cumulative energy of a sharer that was present all the time
	double seen_j;       // cumulative energy of the target
	double outside_j;    // energy while there was no sharer
	struct interval outside; // the current interval without a sharer
	struct part_error *outside_errors;
	struct units {
		uint32_t *order; // the run's metrics sorted by time; NULL: they are sorted already
		size_t next, n;
		struct names names;
		struct keys ids; // span ids, if they do not ascend
		bool ascending;
		uint32_t *counted; // per block: the latest metric counted for it, plus 1
		struct keys keys; // pairs of block and name
		struct unit_sum {
			uint32_t block, name;
			int64_t count;
			double sum;
			bool whole;
		} * sums; // keys.n entries; owned
		size_t capacity;
	} units;
};

// block_sweep.c
int blocks_sweep(struct blocks_work *work);        // -ENOMEM
bool block_has_ended(const struct run_span *span); // a span that has not ended is not a call of its block

// block_calls.c. All calls refer to moments.now.
void calls_begin(struct blocks_work *work, const struct open_span *span, bool has_sample);
void calls_end(struct blocks_work *work, const struct open_span *span);
int calls_sample(struct blocks_work *work, size_t sample); // -ENOMEM
void calls_finish(const struct blocks_work *work, uint32_t block, struct block_finding *finding);

// block_unread.c
int blocks_clear_unread(const struct blocks_work *work,
	struct findings *findings); // after all blocks are finished; -ENOMEM

// block_shares.c
int shares_init(struct blocks_work *work);  // -ENOMEM
void shares_pass(struct blocks_work *work); // advances the time to moments.now
void shares_thread(struct blocks_work *work, struct work_thread *thread,
	uint32_t top); // sets the thread's innermost span
void shares_range_begin(struct blocks_work *work, struct open_span *range);
void shares_range_end(struct blocks_work *work, const struct open_span *range);
void shares_end(struct blocks_work *work); // at the end of the run
void shares_finish(const struct blocks_work *work, uint32_t block, struct block_finding *finding);
int shares_finish_outside(const struct blocks_work *work, struct findings *findings); // -ENOMEM

// block_deconvolve.c
void deconvolve_begin(struct blocks_work *work,
	const struct metering *metering);       // decides whether deconvolution is worth its cost
void deconvolve_pass(struct blocks_work *work); // call before shares_pass
// Stores deconvolved energies in the blocks, the stacks and outside_j. -ENOMEM.
int deconvolve_finish(struct blocks_work *work, const struct metering *metering, struct findings *findings);

// block_units.c
int units_init(struct blocks_work *work); // -ENOMEM
bool units_left(const struct blocks_work *work);
int64_t units_next_ns(const struct blocks_work *work);                 // time of the next metric
int units_count_next(struct blocks_work *work);                        // counts the next metric; -ENOMEM
int units_finish(struct blocks_work *work, struct findings *findings); // all blocks; -ENOMEM
