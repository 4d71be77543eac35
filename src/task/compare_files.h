/* Results in files, side by side. */
#pragma once

#include "analysis/compare/compare.h"

struct named_file {
	const char *name, *file; // names differ
};

/* Each file as load_blocks takes it; statistic: min, max, mean or std. The arena owns the result. What load_blocks and
 * compare_make return. */
int compare_files(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct comparison *ret_comparison, struct wattle_error *reterr);
