/* Results in files, side by side. */
#pragma once

#include "analysis/chart/chart.h"
#include "analysis/compare/compare.h"

struct named_file {
	const char *name, *file; // names differ
	const char *store;       // URL: `file` is the id of a job there; NULL: a file, or the folder of a job
};

/* Each file as load_blocks takes it; statistic: min, max, mean or std. The arena owns the result. What load_blocks and
 * compare_make return. */
int compare_files(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct comparison *ret_comparison, struct wattle_error *reterr);

struct compared_run { // what a page shows of one of them, besides
	struct run run;
	struct findings findings;
	struct charts charts;
	bool is_run; // false: saved results, of which there is nothing else
};
// The same, and the runs themselves: n of them, zeroed by the caller, and his to finish whatever comes back.
int compare_runs(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct compared_run *ret_runs, struct comparison *ret_comparison, struct wattle_error *reterr);
void compare_runs_finish(struct compared_run *runs, size_t n);
