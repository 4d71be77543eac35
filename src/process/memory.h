/* Memory of the target. */
#pragma once

#include "base/keyed_hash.h"
#include "process/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Estimates private and shared memory of one process from some thousand pages of /proc/PID/pagemap. smaps reads all pages and
 * takes 6 ms per 500 MB; this takes 0.2 ms for any size.
 *
 * The kernel marks each present page as exclusive (mapped once: private) or not (shared), and as anonymous or of a file; that
 * is what smaps counts. Small mappings are read whole (where there are more than 512, a random part of the rest stands for all of it), of large ones some runs of pages, each at a random place of its part
 * of the mapping. The sums are scaled to the resident anonymous and file pages of statm, which are exact. Bit 56 of
 * Documentation/admin-guide/mm/pagemap.rst, since Linux 4.2; the right to read it is that of smaps. */

enum page_kind { PAGE_ANONYMOUS, PAGE_FILE, PAGE_KINDS };

struct page_area { // one mapping; pages, as estimated
	uint64_t path_hash;
	double exclusive[PAGE_KINDS], shared[PAGE_KINDS];
};

struct page_sample {
	struct page_area *areas; // owned
	size_t n_areas, capacity;
	double exclusive[PAGE_KINDS], shared[PAGE_KINDS]; // sums over them
	uint64_t random;
	struct hash_key path_key; // of the hashes of mapped paths, which the target chooses

	/* of the process that is read */
	int pagemap_fd;
	uint64_t *window; // owned: entries of pages first_page to first_page + n_pages
	uint64_t first_page;
	size_t n_pages;
	uint64_t n_small;      // small mappings so far
	uint64_t stride_pages; // one run of so many pages of a large mapping
};

int page_sample_open(struct page_sample *sample); // -ENOMEM
void page_sample_close(struct page_sample *sample);

/* Reads the mappings of a member, about n_runs runs of pages and all small mappings: fills areas. text is scratch of
 * text_size bytes. -EACCES, -ESRCH, -ENOENT (no page map), -E2BIG (too many mappings) …: nothing is known. */
int page_sample_read(struct page_sample *sample, const struct tree *tree, const struct tree_member *member,
	size_t n_runs, char *text, size_t text_size);
/* What the mappings have of so many resident bytes, in bytes: private, and by area shared (of page_sample_shared). */
int64_t page_sample_private(struct page_sample *sample, int64_t anonymous_bytes, int64_t file_bytes,
	int64_t page_bytes);
int64_t page_sample_shared(const struct page_area *area, int64_t page_bytes); // after page_sample_private

/* The pure half: one line of /proc/PID/maps. */
struct page_range {
	uint64_t first_page, n_pages;
	bool is_readable_memory; // it may have pages, and they are memory: no reserved address space, no device
};
struct page_range page_range_parse(const char *line, size_t size, int64_t page_bytes);
// The path at the end of a line of maps, or of the first line of a mapping in smaps; nothing where it has none.
const char *smaps_path(const char *line, size_t size, size_t *ret_size);
uint64_t smaps_path_hash(const struct hash_key *key, const char *line, size_t size); // never 0

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

/* Private and shared memory of the target at every sample, between the readings of memory.h, from what each sample has
 * of each process: anonymous pages, pages of files and shared memory, page faults, and who forked whom.
 *
 * private    of a process: as read, plus the anonymous memory it gained since. A forked child that was not read yet has
 *            what exceeds its parent's. Copies on write do not show in RSS, but each costs a page fault: once some
 *            forked children were read, the private memory per fault that they had holds for the others.
 * shared     as read, plus the growth of the largest mapping of files and shared memory of any process: two processes
 *            that map more are taken to map the same.
 *
 * These err on the low side; the next reading shows the rest at once. Two exceptions err on the high side: while only some
 * members are read, shared memory that the others gave back still counts, and so does memory of a process that no reading
 * is allowed to see, if it shares that memory. */

struct memory_totals { // private + shared; combined: shared once
	int64_t main_bytes, descendants_bytes, combined_bytes;
};

struct memory_estimate {
	struct memory_shared shared;       // at the last reading; 0 before
	struct memory_shared largest_file; // most pages of files and shared memory of one process, at the last reading
	double private_per_fault_byte;     // of forked children, as read; 0 before
	int64_t most_private_bytes;        // the largest of them
	int64_t page_bytes;

	/* since the last reading */
	int64_t rss_bytes, processes;
	struct memory_totals carried;              // as last estimated; VALUE_MISSING: no process could be read
	int64_t changed_bytes, last_changed_bytes; // what may have changed its owner or come up, now and one sample ago
};

// After a round of the tree: brings `carried` and what changed up to now.
void memory_estimate_update(struct memory_estimate *estimate, struct tree *tree);
// A reading of all members, or of some (then what the others share still counts), has been stored in them.
void memory_estimate_apply_reading(struct memory_estimate *estimate, const struct tree *tree,
	const struct memory_shared *shared, bool is_whole);
// The reading was applied, but some members could not be read: adds what is estimated of them to the groups that are known.
void memory_estimate_add_unread(const struct memory_estimate *estimate, const struct tree *tree,
	struct memory_reading *reading);
// Private memory of a member as estimated now.
int64_t memory_estimate_private(const struct memory_estimate *estimate, const struct tree_member *member);
// How much of its memory may have changed since it was read; 0 if its page map cannot be read.
int64_t memory_estimate_unsure(const struct tree_member *member, int64_t page_bytes);

/* Readings of private and shared memory by a sample of pages, for targets of several processes: what they
 * share changes with every fork and every write after it, and smaps is too dear to follow that. They cost 0.1 ms a small
 * process and 0.4 ms one with 200 mappings, whatever their size, and hold no lock for longer than it takes to read 64 pages.
 *
 * Both kinds of readings together take `budget` of the time that passes at most. A sample is taken when page faults, sizes or
 * new processes show that a quarter of the target's memory may have changed its owner; when less has, once it is steady or if
 * more is left than one costs. It reads all members, or, if that took more than 10 ms, those that changed most. */

// After memory_estimate_update.
bool memory_sample_due(struct memory_reader *reader, const struct memory_estimate *estimate, int64_t t_ns);
// PSS and USS are VALUE_MISSING. False: nothing could be read.
bool memory_sample_read(struct memory_reader *reader, struct memory_estimate *estimate, struct tree *tree, int64_t t_ns,
	struct memory_reading *ret_reading);

// Reads smaps or a sample, whichever is due, after memory_estimate_update. False: neither, or nothing could be read.
bool memory_read_if_due(struct memory_reader *reader, struct memory_estimate *estimate, struct tree *tree, int64_t t_ns,
	const struct tree_totals *totals, struct memory_reading *ret_reading);

// After a round of the tree: stores what is carried forward, and a reading if one is due, in the memory metrics of a sample.
void memory_measure(struct memory_reader *reader, struct memory_estimate *estimate, struct tree *tree, int64_t t_ns,
	const struct tree_totals *totals, int64_t *run_values);
