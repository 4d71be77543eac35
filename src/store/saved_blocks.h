/* The input of a comparison: one statistic of a run's code blocks, read from the output of `wattle blocks --format json`;
 * task/task.h computes it from a run. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct saved_block {
	const char *name;
	double compute_time_s;
	double *usage; // n_metrics values, in the order of `metrics`
	double total_j, error_j;
};

struct saved_blocks {         // unknown values are NaN
	const char **metrics; // names, in the order of the document
	size_t n_metrics;
	double *overall; // of each metric
	struct saved_block *blocks;
	size_t n_blocks;
	bool has_energy; // true for runs; gpu_tracker's files have no energy
	double total_j, error_j, mean_w, duration_s;
	const char *ram_unit, *gpu_ram_unit; // NULL unknown
};

/* statistic: min, max, mean or std. -EINVAL with a message that names the path: not JSON, or a different document. The arena
 * owns the result. */
int saved_blocks_load(const char *path, const char *statistic, struct arena *arena, struct saved_blocks *ret_saved,
	struct wattle_error *reterr);
