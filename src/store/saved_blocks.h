/* What a comparison needs of a run: one statistic of its code blocks. Read from what `wattle blocks --format json` wrote; task/task.h
 * makes it from a run. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct saved_block {
	const char *name;
	double compute_time_s;
	double *usage; // n_metrics of the document
	double total_j, error_j;
};

struct saved_blocks {         // unknown figures are NaN
	const char **metrics; // names, in the order of the document
	size_t n_metrics;
	double *overall; // of each metric
	struct saved_block *blocks;
	size_t n_blocks;
	bool has_energy; // a run's; gpu_tracker's files know none
	double total_j, error_j;
	const char *ram_unit, *gpu_ram_unit; // NULL unknown
};

/* statistic: min, max, mean or std. -EINVAL with a sentence that names the path: no JSON, or another document. The arena
 * owns the result. */
int saved_blocks_load(const char *path, const char *statistic, struct arena *arena, struct saved_blocks *ret_saved,
	struct wattle_error *reterr);
