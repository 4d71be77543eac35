/* Readings of private and shared memory by a sample of pages (page_sample.h), for targets of several processes: what they
 * share changes with every fork and every write after it, and smaps is too dear to follow that. They cost 0.1 ms a small
 * process and 0.4 ms one with 200 mappings, whatever their size, and hold no lock for longer than it takes to read 64 pages.
 *
 * Both kinds of readings together take `budget` of the time that passes at most. A sample is taken when page faults, sizes or
 * new processes show that a quarter of the target's memory may have changed its owner; when less has, once it is steady or if
 * more is left than one costs. It reads all members, or, if that took more than 10 ms, those that changed most. */
#pragma once

#include "process/memory_estimate.h"

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
