/* Divides the target's energy by a timeline from the caller, for example of GPU work by its events, or of the spans of
 * some names. The energy is deconvolved where that resolves more than interpolation between two updates (deconvolve.h). Pure, as
 * all of analysis/. */
#pragma once

#include "store/run.h"

#include <stddef.h>
#include <stdint.h>

/* A time interval of work for one column. Pieces can come in any order and overlap: at each instant the overlapping
 * pieces have equal shares. Time without a piece belongs to column 0, as does the time of pieces of column 0. */
struct divide_interval {
	int64_t begin_ns, end_ns;
	uint32_t column;
};

// The domains whose energy is divided: one domain by name, or all domains in the total except some.
struct divide_of {
	const char *domain; // NULL: the total
	const char *const *without;
	size_t n_without;
	// Group of each column; each group has an energy and an error of its own. NULL: no groups.
	const uint32_t *group_of;
	size_t n_groups;
};

struct divided {
	double time_s;     // shared time, s; the sum over all columns is the duration of the run
	double j, error_j; // error_j: half of a 95 % interval; NaN: no measurement
};

/* *ret has n_columns entries, then n_groups. -ENOENT: the run has no such domain; -ENOMEM. Sorts the pieces in place. */
int divide_intervals(const struct run *run, struct divide_interval *pieces, size_t n, size_t n_columns,
	const struct divide_of *of, struct divided *ret);

/* Pieces of a process's (pid) spans that have one of the names: at each instant the innermost of them in each thread.
 * Other spans are ignored. The column of names[i] is columns[i]. The caller frees the array. -ENOMEM. */
int divide_spans(const struct run *run, int64_t pid, const char *const *names, const uint32_t *columns, size_t n_names,
	struct divide_interval **ret_pieces, size_t *ret_n);
