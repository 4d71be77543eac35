/* Which track a slice is on.
 *
 * Slices of one track must lie inside each other: Perfetto ends the innermost one, whatever an end was meant for. So a thread's
 * spans are on the thread's track as long as they nest, and one that crosses another goes to a further track beside it. Ranges
 * are no part of a thread's nesting; those that overlap are on tracks of their own. Nothing is cut and nothing left out.
 *
 * A row goes to the first lane that has place for it. Tens of thousands may be open at once, so neither that lane nor those
 * that are over are looked for one by one. */
#pragma once

#include "report/trace/parts.h"

struct lane_row { // a span on its way to a track
	size_t process;
	int64_t begin_ns, end_ns; // INT64_MAX: it never ended
	size_t span;
	int32_t tid; // 0: ranges, and spans of unknown threads
	bool is_range;
};

struct lane {
	uint64_t track;               // 0: new
	const struct lane_row **open; // one inside the other; owned
	size_t n, capacity;
};

struct lane_end { // of an open row
	int64_t end_ns;
	size_t lane;
};

struct lanes { // of one thread, or of the ranges of one process
	struct trace *trace;
	struct lane *items;
	size_t n, capacity;
	int64_t *
		place; // a tree: the latest end that has place in the lanes below a node; the root is 1, leaves are at `capacity`
	struct lane_end *ends; // a heap: the earliest one first
	size_t n_ends, ends_capacity;
};

// Ends what is over when `row` begins, and puts it on a lane. NULL without memory.
struct lane *lanes_put(struct lanes *lanes, const struct lane_row *row);
void lanes_end_all(struct lanes *lanes); // for the next thread
void lanes_free(struct lanes *lanes);
