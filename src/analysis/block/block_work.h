/* How code blocks are told: one walk over the begins and ends of all spans in order of time (block_sweep.c). What it keeps
 * meanwhile is here, and who fills which part of it:
 *
 *   block_sweep.c   which spans are open, in which thread and on top of which
 *   block_calls.c   of a block: calls, time, and all that holds while at least one of its calls is open
 *   block_shares.c  of a block and a stack: what it has for itself
 *   block_units.c   of a block: the work that was reported inside it
 *   block_fold.c    who shared the target's energy when, for blocks that are shorter than a counter's period
 *
 * Rules:
 *   - The innermost span of a thread is the one that began last and has not ended, whatever ends first.
 *   - Ranges (begun and ended by number, in any thread) stand around the nested spans of their process: each has for
 *     itself the time in which no thread of its process is in a nested span.
 *   - At each instant the target's energy is divided evenly among the innermost spans of all threads and such ranges.
 *   - At one instant begins come first, then samples and metrics, then ends: both ends belong to a call. */
#pragma once

#include "analysis/block/fold.h"
#include "analysis/energy/moments.h"
#include "analysis/block/paths.h"
#include "analysis/column.h"
#include "analysis/names.h"
#include "analysis/stats.h"

enum { BLOCK_NONE = UINT32_MAX };

struct share { // of the target's energy and time
	double j, ns;
	struct part_error *errors; // as findings.domains
};

struct block_work {
	struct tally time_s; // of each call
	int64_t non_empty_calls, timepoints, unwound, cut;
	double active_ns, cpu_ns, cpu_unknown_ns, thread_cpu_ns;
	bool thread_cpu_known;
	uint32_t open;             // calls open now …
	uint32_t since;            // … the first of them since this moment
	uint32_t listed;           // where it stands in the list of blocks that are open
	struct part_error *errors; // of the time in which it was open, by domain
	struct share self;
	struct tally *columns; // TRACKING_METRICS of them; NULL: no sample yet
};

struct stay { // time for which a thread has been in one span, or a process's ranges have had its time
	bool on;
	uint32_t since;     // moment
	double since_one_j; // work.one_j then
};

struct work_thread {
	int32_t pid, tid;
	uint32_t process, top; // top: its innermost open span
	uint32_t listed;       // where it stands in the list of threads that are in a span
	struct stay stay;
};

struct work_process {
	int32_t pid;
	uint32_t root;            // path
	uint32_t threads, ranges; // threads in a nested span; ranges open
	uint32_t last_range;      // of those open
	struct stay stay;         // of its ranges
	struct share had;         // by each of its ranges that was open all the time
};

struct open_span {
	int64_t end_ns;
	uint32_t span, block, path; // span: index in the run
	uint32_t thread;            // of a range: BLOCK_NONE
	uint32_t process;
	uint32_t begun;        // counts up with each span
	bool left;             // it ends now, and its thread is in another one already
	uint32_t below, above; // in its thread; of a range among those of its process
	uint32_t next_free;
	double had_j, had_ns;          // of a range: of process.had when it began
	struct part_error *had_errors; // owned by work.arena; stays with the place
};

struct blocks_work {
	const struct findings *findings;
	const struct run *run;
	const struct columns *columns;
	struct arena *arena;
	struct names names; // of the spans
	struct moments moments;

	struct block_work *blocks; // names.n
	uint32_t *open_blocks;     // n_open_blocks of them
	size_t n_open_blocks;

	struct keys thread_keys, process_keys;
	struct work_thread *threads;    // owned
	struct work_process *processes; // owned
	size_t threads_room, processes_room;

	struct open_span *open; // places; owned
	size_t n_open, open_room;
	uint32_t free_open, begun;

	struct paths paths;
	struct names labels;  // of the run's processes: roots of paths
	struct keys pids;     // of the run's processes, so numbered …
	uint32_t *process_of; // … with the index of the process

	uint32_t *busy_threads; // in a span, n_busy of them; owned
	size_t n_busy, busy_room;
	struct dealing { // to the columns of a fold: path + 1
		bool wanted;
		struct fold_piece *pieces; // owned
		size_t n, room;
		int64_t dealt_ns; // up to here
	} dealing;
	uint32_t parties;    // that share the target's energy now
	double one_j;        // what a party had that was there all the time
	double seen_j;       // the target's energy up to now
	double outside_j;    // while there was no party
	struct stay outside; // since when there is none
	struct part_error *outside_errors;
	struct units {
		uint32_t *order; // of the run's metrics, by time; NULL: as they stand
		size_t next, n;
		struct names names;
		struct keys ids; // of the spans, where they do not ascend
		bool ascending;
		uint32_t *told;   // of each block: the latest metric that was counted for it, plus 1
		struct keys keys; // block, name
		struct unit_sum {
			uint32_t block, name;
			int64_t count;
			double sum;
			bool whole;
		} * sums; // keys.n of them; owned
		size_t room;
	} units;
};

// block_sweep.c
int blocks_sweep(struct blocks_work *work);        // -ENOMEM
bool block_has_ended(const struct run_span *span); // else it is no call of its block

// block_calls.c. Whatever is told of is told at moments.now.
void calls_begin(struct blocks_work *work, const struct open_span *span, bool has_sample);
void calls_end(struct blocks_work *work, const struct open_span *span);
int calls_sample(struct blocks_work *work, size_t sample); // -ENOMEM
void calls_finish(const struct blocks_work *work, uint32_t block, struct block_finding *finding);

// block_unread.c
int blocks_forget_unread(const struct blocks_work *work, struct findings *findings); // when all are finished; -ENOMEM

// block_shares.c
int shares_init(struct blocks_work *work);  // -ENOMEM
void shares_pass(struct blocks_work *work); // time has gone on to moments.now
void shares_thread(struct blocks_work *work, struct work_thread *thread,
	uint32_t top); // its innermost span from now on
void shares_range_begin(struct blocks_work *work, struct open_span *range);
void shares_range_end(struct blocks_work *work, const struct open_span *range);
void shares_end(struct blocks_work *work); // of the run
void shares_finish(const struct blocks_work *work, uint32_t block, struct block_finding *finding);
int shares_finish_outside(const struct blocks_work *work, struct findings *findings); // -ENOMEM

// block_fold.c
void dealing_begin(struct blocks_work *work, const struct metering *metering); // is it worth it?
void dealing_pass(struct blocks_work *work);                                   // as shares_pass, before it
// Puts folded energies into the blocks, the stacks and what is outside. -ENOMEM.
int dealing_finish(struct blocks_work *work, const struct metering *metering, struct findings *findings);

// block_units.c
int units_init(struct blocks_work *work); // -ENOMEM
bool units_left(const struct blocks_work *work);
int64_t units_next_ns(const struct blocks_work *work);                 // of the next metric
int units_tell(struct blocks_work *work);                              // of the next metric; -ENOMEM
int units_finish(struct blocks_work *work, struct findings *findings); // of all blocks; -ENOMEM
