/* PSS, USS, private and shared memory of the target, from /proc/PID/smaps, on a cadence of their own.
 *
 * The kernel walks the page tables for each reading (about 10 ms per GB and process) and holds the memory-map lock of
 * the process while it does. So readings are paid from an allowance: `budget` of the time that passes, and never more
 * than 0.5 %, because that is also what the target may lose. The first reading is made at the first sample, the
 * next ones as soon as the allowance covers their expected cost, new maxima of RSS first. What a reading costs is
 * learned from CPU time, in which a virtual machine may count time that its host took: one reading is believed to
 * be four times as dear as expected at most.
 *
 * shared memory is gpu_tracker's: per mapped path the Shared_Clean+Shared_Dirty of the process of the group that has most
 * of it, summed over paths; all mappings without a name are one path. (gpu_tracker takes the largest single mapping of a path
 * for all that a process shares of it, and so misses most of a heap of many mappings.) */
#pragma once

#include "process/page_sample.h"
#include "process/tree.h"

#include <stdbool.h>
#include <stdint.h>

struct memory_group {
	int64_t pss_bytes, uss_bytes, private_bytes, shared_bytes; // VALUE_MISSING if no process could be read
};

struct memory_reading {
	struct memory_group main, descendants;
	int64_t combined_shared_bytes;
};

enum {
	MEMORY_TEXT_SIZE = 65536, // of memory_reader.text
	MEMORY_EXCESS_MAX = 4,    // a dearer reading may be a machine that held it up: no price by itself
};

extern const struct memory_reading memory_nothing_read; // all VALUE_MISSING

struct memory_path { // one mapped path: what the process that shares most of it shares
	uint64_t hash;
	uint32_t process;      // whose mappings are being added up
	int64_t process_bytes; // of that process so far
	int64_t main_bytes, descendants_bytes;
};

struct memory_reader {
	double share; // of wall time that may be spent reading; 0: never read
	int64_t credit_ns, last_credit_t_ns;
	int64_t last_read_t_ns;                       // VALUE_MISSING: not yet
	int64_t max_rss_bytes, last_rss_bytes;        // largest at any reading; when it was last asked
	double cost_ns_per_byte, cost_ns_per_process; // as measured
	int64_t spent_ns;                             // CPU time of all readings
	uint64_t n_readings;
	char *text; // owned: one piece of a file
	struct page_sample pages;
	double all_share; // of wall time that both kinds of readings may take together
	int64_t all_credit_ns, all_credit_t_ns;
	double sample_ns_per_process;                          // as measured
	int64_t sample_t_ns, sample_wait_ns, sample_processes; // the last sample; VALUE_MISSING: not yet
	int64_t *unsure_bytes;                                 // owned scratch of a sample of some members
	size_t unsure_capacity;
	struct memory_path *paths; // owned: open-addressed by hash
	size_t n_paths, paths_size;
	uint32_t n_files;  // processes begun so far
	uint32_t n_unread; // living members that the last reading of smaps was not allowed to read
};

// budget_percent of one core; 0: never read. -ENOMEM.
int memory_reader_open(struct memory_reader *reader, double budget_percent, int64_t t_ns);
void memory_reader_close(struct memory_reader *reader);
// Whether a reading is due now for a target of this size.
bool memory_reader_due(struct memory_reader *reader, int64_t t_ns, int64_t rss_bytes, int64_t processes);
// A reading cost so much CPU time.
void memory_reader_charge(struct memory_reader *reader, int64_t cost_ns, int64_t t_ns, int64_t rss_bytes,
	int64_t processes);
// Reads all living members of the tree.
void memory_reader_read(struct memory_reader *reader, const struct tree *tree, int64_t t_ns, int64_t rss_bytes,
	int64_t processes, struct memory_reading *ret_reading);

void memory_reader_begin(struct memory_reader *reader); // forgets all paths
// The mappings of one process after the other: `process` is from memory_reader_next.
uint32_t memory_reader_next(struct memory_reader *reader);
void memory_reader_add_path(struct memory_reader *reader, uint32_t process, uint64_t hash, bool is_main,
	int64_t shared_bytes);
// A reading of this member; page faults are those of the last round.
void memory_member_read(struct tree_member *member, int64_t private_bytes, int64_t anonymous_bytes, int64_t file_bytes);

struct memory_shared {
	int64_t main_bytes, descendants_bytes, combined_bytes;
};
struct memory_shared memory_reader_shared(const struct memory_reader *reader); // of the files fed so far

/* One smaps file, fed in whole lines: the pure half. */
struct smaps_state {
	bool is_main;
	uint32_t process;                                     // of memory_reader_next; 0: not begun
	uint64_t path_hash;                                   // of the mapping that the lines belong to; 0: none yet
	int64_t shared_bytes;                                 // of that mapping so far
	int64_t pss_bytes, private_bytes, private_huge_bytes; // sums over the file
	int64_t rss_bytes, anonymous_bytes;                   // likewise
};
void smaps_feed(struct memory_reader *reader, struct smaps_state *state, const char *lines, size_t size);
void smaps_end(struct memory_reader *reader, struct smaps_state *state); // adds up the last mapping
