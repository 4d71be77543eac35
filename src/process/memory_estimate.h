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
#pragma once

#include "process/memory.h"

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
