/* The target's energy dealt out by a timeline that the caller brings: GPU work as its events tell it, or the spans of
 * some names. Folded where that tells more than the line between two updates (fold.h). Pure, like all of analysis/. */
#pragma once

#include "store/run.h"

#include <stddef.h>
#include <stdint.h>

/* Somebody worked for a column. Pieces may come in any order and overlap: at each instant all that go on share evenly.
 * Time that no piece covers is column 0's, as is that of pieces of column 0. */
struct divide_piece {
	int64_t begin_ns, end_ns;
	uint32_t column;
};

// Energy of which domains: one by its name, or all that are in the total but for some.
struct divide_of {
	const char *domain; // NULL: the total
	const char *const *without;
	size_t n_without;
	// Of each column: what belongs together has an energy and an error of its own. NULL: there are no groups.
	const uint32_t *group_of;
	size_t n_groups;
};

struct divided {
	double time_s;     // shared; over all columns the length of the run
	double j, error_j; // error_j: half of a 95 % interval; NaN: nothing was measured
};

/* ret holds n_columns, then n_groups. -ENOENT: the run has no such domain; -ENOMEM. Pieces are sorted in place. */
int divide_pieces(const struct run *run, struct divide_piece *pieces, size_t n, size_t n_columns,
	const struct divide_of *of, struct divided *ret);

/* Pieces of the spans of a process (pid) that have one of the names: at each instant of a thread the innermost of those.
 * Other spans are as if they were not there. column_of names[i] is columns[i]. The array is the caller's to free. -ENOMEM. */
int divide_spans(const struct run *run, int64_t pid, const char *const *names, const uint32_t *columns, size_t n_names,
	struct divide_piece **ret_pieces, size_t *ret_n);
