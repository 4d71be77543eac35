/* Memory usage of the target. */
#pragma once

#include "base/keyed_hash.h"
#include "process/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Estimates private and shared memory of one process from some thousand pages of /proc/PID/pagemap. smaps reads all
 * pages and takes 6 ms per 500 MB; this takes 0.2 ms for any size.
 *
 * The kernel marks each present page as exclusive (mapped once: private) or shared, and as anonymous or file-backed;
 * smaps counts the same. Small mappings are read completely (a random sample of those after the first 512). Of large
 * mappings, some runs of pages are read, each at a random position in its part of the mapping. The sums are scaled to
 * the resident anonymous and file pages of statm, which are exact. See bit 56 of
 * Documentation/admin-guide/mm/pagemap.rst, since Linux 4.2; it needs the same permission as smaps. */

enum page_kind { PAGE_ANONYMOUS, PAGE_FILE, PAGE_KINDS };

struct page_area { // one mapping; estimated numbers of pages
	uint64_t path_hash;
	double exclusive[PAGE_KINDS], shared[PAGE_KINDS];
};

struct page_sample {
	struct page_area *areas; // owned
	size_t n_areas, capacity;
	double exclusive[PAGE_KINDS], shared[PAGE_KINDS]; // sums over them
	uint64_t random;
	struct hash_key path_key; // key for hashes of mapped paths, which the target chooses

	/* State of the process being read. */
	int pagemap_fd;
	uint64_t *window; // owned: entries of pages first_page to first_page + n_pages
	uint64_t first_page;
	size_t n_pages;
	uint64_t n_small;      // number of small mappings so far
	uint64_t stride_pages; // one run is read per this many pages of a large mapping
};

int page_sample_open(struct page_sample *sample); // -ENOMEM
void page_sample_close(struct page_sample *sample);

/* Reads the mappings of a member, about n_runs runs of pages and the small mappings, and fills in areas. text: scratch
 * of text_size bytes. -EACCES, -ESRCH, -ENOENT (no page map), -E2BIG (too many mappings) …: nothing is known. */
int page_sample_read(struct page_sample *sample, const struct tree *tree, const struct tree_member *member,
	size_t n_runs, char *text, size_t text_size);
/* Converts the sample to bytes for the given resident sizes. Returns private memory; page_sample_shared gives the
 * shared memory of an area. */
int64_t page_sample_private(struct page_sample *sample, int64_t anonymous_bytes, int64_t file_bytes,
	int64_t page_bytes);
int64_t page_sample_shared(const struct page_area *area, int64_t page_bytes); // call after page_sample_private

/* Parser without I/O: one line of /proc/PID/maps. */
struct page_range {
	uint64_t first_page, n_pages;
	bool is_readable_memory; // may have pages of memory: not reserved address space, not a device
};
struct page_range page_range_parse(const char *line, size_t size, int64_t page_bytes);
// The path at the end of a line of maps, or of the first line of a mapping in smaps; size 0 if there is none.
const char *smaps_path(const char *line, size_t size, size_t *ret_size);
uint64_t smaps_path_hash(const struct hash_key *key, const char *line, size_t size); // never 0

/* PSS, USS, private and shared memory of the target, read from /proc/PID/smaps at an adaptive interval.
 *
 * For each reading the kernel walks the page tables (about 10 ms per GB and process) and holds the process's memory-map
 * lock. So readings have a time budget: `budget` of the elapsed time, at most 0.5 %, because the target may lose as
 * much. The first reading is made at the first sample, later ones when the accumulated budget covers their expected
 * cost; new maxima of RSS have priority. The cost is estimated from CPU time, in which a virtual machine may include
 * time taken by its host, so a single reading counts as at most four times the expected cost.
 *
 * shared memory is defined as in gpu_tracker: per mapped path, the Shared_Clean+Shared_Dirty of the process of the
 * group that has most of it, summed over paths; all mappings without a name count as one path. (gpu_tracker uses only
 * the largest single mapping of a path per process, and so misses most of a heap with many mappings.) */

struct memory_group {
	int64_t pss_bytes, uss_bytes, private_bytes, shared_bytes; // VALUE_MISSING if no process could be read
};

struct memory_reading {
	struct memory_group main, descendants;
	int64_t combined_shared_bytes;
};

enum {
	MEMORY_TEXT_SIZE = 65536, // size of memory_reader.text
	MEMORY_EXCESS_MAX = 4,    // maximum factor over the expected cost: the machine may have delayed the reading
};

extern const struct memory_reading memory_nothing_read; // all VALUE_MISSING

struct memory_path { // one mapped path: the maximum over processes of the memory that a process shares
	uint64_t hash;
	uint32_t process;      // process whose mappings are being summed
	int64_t process_bytes; // sum for that process so far
	int64_t main_bytes, descendants_bytes;
};

struct memory_reader {
	double share; // fraction of wall time for readings; 0: never read
	int64_t credit_ns, last_credit_t_ns;
	int64_t last_read_t_ns;                       // VALUE_MISSING: no reading yet
	int64_t max_rss_bytes, last_rss_bytes;        // max_rss_bytes: maximum over readings; last_rss_bytes: at the last check
	double cost_ns_per_byte, cost_ns_per_process; // measured
	int64_t spent_ns;                             // CPU time of all readings, ns
	uint64_t n_readings;
	char *text; // owned: buffer for one piece of a file
	struct page_sample pages;
	double all_share; // fraction of wall time for both kinds of readings together
	int64_t all_credit_ns, all_credit_t_ns;
	double sample_ns_per_process;                          // measured
	int64_t sample_t_ns, sample_wait_ns, sample_processes; // of the last sample; VALUE_MISSING: none yet
	int64_t *unreliable_bytes;                             // owned scratch for sampling some of the members
	size_t unreliable_capacity;
	struct memory_path *paths; // owned: hash table with open addressing
	size_t n_paths, paths_size;
	uint32_t n_files;  // number of processes started so far
	uint32_t n_unread; // living members whose smaps the last reading had no permission to read
};

// budget_percent is relative to one core; 0: never read. -ENOMEM.
int memory_reader_open(struct memory_reader *reader, double budget_percent, int64_t t_ns);
void memory_reader_close(struct memory_reader *reader);
// Whether a reading is due now for a target of this size.
bool memory_reader_due(struct memory_reader *reader, int64_t t_ns, int64_t rss_bytes, int64_t processes);
// Records the CPU time that a reading took.
void memory_reader_charge(struct memory_reader *reader, int64_t cost_ns, int64_t t_ns, int64_t rss_bytes,
	int64_t processes);
// Reads all living members of the tree.
void memory_reader_read(struct memory_reader *reader, const struct tree *tree, int64_t t_ns, int64_t rss_bytes,
	int64_t processes, struct memory_reading *ret_reading);

void memory_reader_begin(struct memory_reader *reader); // clears all paths
// Starts the mappings of the next process and returns its `process` number.
uint32_t memory_reader_next(struct memory_reader *reader);
void memory_reader_add_path(struct memory_reader *reader, uint32_t process, uint64_t hash, bool is_main,
	int64_t shared_bytes);
// Stores a reading of this member; page faults are those of the last round.
void memory_member_read(struct tree_member *member, int64_t private_bytes, int64_t anonymous_bytes, int64_t file_bytes);

struct memory_shared {
	int64_t main_bytes, descendants_bytes, combined_bytes;
};
struct memory_shared memory_reader_shared(const struct memory_reader *reader); // for the files read so far

/* Parser without I/O: one smaps file, fed in whole lines. */
struct smaps_state {
	bool is_main;
	uint32_t process;                                     // from memory_reader_next; 0: not started
	uint64_t path_hash;                                   // of the current mapping; 0: none yet
	int64_t shared_bytes;                                 // of the current mapping so far
	int64_t pss_bytes, private_bytes, private_huge_bytes; // sums over the file
	int64_t rss_bytes, anonymous_bytes;                   // sums over the file
};
void smaps_feed(struct memory_reader *reader, struct smaps_state *state, const char *lines, size_t size);
void smaps_end(struct memory_reader *reader, struct smaps_state *state); // adds the last mapping

/* Private and shared memory of the target at every sample, estimated between the readings of memory.h. Inputs for each
 * process: anonymous pages, pages of files and shared memory, page faults, and its parent.
 *
 * private    of a process: as read, plus its later growth of anonymous memory. A forked child that was not read yet has
 *            the part that exceeds its parent's. Copy-on-write does not change RSS but causes a page fault: once some
 *            forked children were read, their private memory per fault is used for the others.
 * shared     as read, plus the largest growth of file and shared memory of any single process: processes that map more
 *            are assumed to map the same memory.
 *
 * These estimates are too low at worst; the next reading corrects them. Two cases may be too high: if only some members
 * are read, shared memory that the others released still counts, and so does memory of a process that can't be read, if
 * it shares that memory. */

struct memory_totals { // private + shared; combined: shared memory counted once
	int64_t main_bytes, descendants_bytes, combined_bytes;
};

struct memory_estimate {
	struct memory_shared shared;       // at the last reading; 0 before the first
	struct memory_shared largest_file; // maximum of file and shared memory of one process, at the last reading
	double private_per_fault_byte;     // of forked children, as read; 0 before the first
	int64_t max_private_bytes;         // maximum over forked children
	int64_t page_bytes;

	/* Since the last reading. */
	int64_t rss_bytes, processes;
	struct memory_totals carried;              // latest estimate; VALUE_MISSING: no process could be read
	int64_t changed_bytes, last_changed_bytes; // memory that may have become private, shared or resident since the
	                                           // last reading, now and one sample ago
};

// Call after a round of the tree: updates `carried` and the change estimates.
void memory_estimate_update(struct memory_estimate *estimate, struct tree *tree);
// Call after a reading of all members, or of some (the others' shared memory then still counts), was stored in them.
void memory_estimate_apply_reading(struct memory_estimate *estimate, const struct tree *tree,
	const struct memory_shared *shared, bool is_whole);
// Call after a reading without some members: adds their estimates to the groups with known values.
void memory_estimate_add_unread(const struct memory_estimate *estimate, const struct tree *tree,
	struct memory_reading *reading);
// Present estimate of a member's private memory.
int64_t memory_estimate_private(const struct memory_estimate *estimate, const struct tree_member *member);
// Memory of a member that may have changed since it was read; 0 if its page map can't be read.
int64_t memory_estimate_unreliable(const struct tree_member *member, int64_t page_bytes);

/* Readings of private and shared memory from a sample of pages, for targets with several processes. Their shared memory
 * changes with every fork and every later write, and smaps is too slow to follow. A sample costs 0.1 ms for a small
 * process and 0.4 ms for one with 200 mappings, whatever their size, and holds no lock longer than reading 64 pages
 * takes.
 *
 * Both kinds of readings together take at most `budget` of the elapsed time. A sample is due when page faults, sizes or
 * new processes show that a quarter of the target's memory may have changed between private and shared. After smaller
 * changes it is due once they stop, or if the budget left exceeds its cost. It reads all members, or, if that took more
 * than 10 ms, those with the largest changes. */

// Call after memory_estimate_update.
bool memory_sample_due(struct memory_reader *reader, const struct memory_estimate *estimate, int64_t t_ns);
// PSS and USS are VALUE_MISSING. False: nothing could be read.
bool memory_sample_read(struct memory_reader *reader, struct memory_estimate *estimate, struct tree *tree, int64_t t_ns,
	struct memory_reading *ret_reading);

// Reads smaps or a sample, whichever is due; call after memory_estimate_update. False: none was due, or nothing could
// be read.
bool memory_read_if_due(struct memory_reader *reader, struct memory_estimate *estimate, struct tree *tree, int64_t t_ns,
	const struct tree_totals *totals, struct memory_reading *ret_reading);

// Call after a round of the tree: stores the estimates, and a reading if one is due, in the memory metrics of a sample.
void memory_measure(struct memory_reader *reader, struct memory_estimate *estimate, struct tree *tree, int64_t t_ns,
	const struct tree_totals *totals, int64_t *run_values);
