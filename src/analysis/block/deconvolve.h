/* Deconvolution: the energy of code blocks whose calls are shorter than the time between two updates of a counter.
 *
 * Such a counter does not resolve one call, but over many calls each interval between two updates holds another mixture
 * of blocks. Each interval gives one equation:   energy of the interval = sum over blocks of (power of the block × its
 * time in the interval).   Least squares over all intervals give the power of each block; docs/accuracy.md has the
 * method and its resolution. Pure, as all of analysis/. */
#pragma once

#include "analysis/energy/domains.h"

/* The target's time divided among columns: column 0 is the time outside of all spans, the caller defines the others
 * (one for each path of names, or one for each name, by its innermost span). At each instant the weights of all pieces
 * add up to at most 1, where threads share the time; the remainder belongs to column 0, which needs no pieces. Pieces
 * are sorted by begin_ns. Overlapping pieces have the same begin and end. Time outside of the run's segments is
 * ignored. */
struct deconvolve_interval {
	int64_t begin_ns, end_ns;
	uint32_t column;
	float weight; // above 0, at most 1
};

struct deconvolve_timeline {
	const struct deconvolve_interval *pieces;
	size_t n_pieces;
	size_t n_columns; // including column 0
};

struct deconvolve_energy {
	double j, error_j; // attributed to the target; error_j: half of a 95 % interval. NaN: no measurement
};

struct deconvolve_column {
	double time_s;           // weighted, within the run
	double power_w, error_w; // attributed to the target, while the column ran; NaN: no time, or no measurement
	bool folded;             // power from the equations, not by linear interpolation between updates
};

struct deconvolve_domain;
struct fold {
	size_t n_columns, n_domains;
	struct deconvolve_column *columns;        // sums over the domains in the total
	const struct deconvolve_domain **domains; // same index as findings.domains; NULL: no measurement
	const struct findings *findings;
};

/* Whether the calls are so short and so many that deconvolution resolves more than linear interpolation between two updates.
 * mean_call_s: of uninterrupted pieces of the block; calls: their number. */
bool deconvolve_helps(const struct findings *findings, const struct metering *metering, double mean_call_s,
	int64_t calls);
/* All memory is in `arena`; findings and metering must outlive the result. The energies of all columns add up to the
 * target's energy in the ledger, for each domain. -ENOMEM. */
int deconvolve_make(const struct findings *findings, const struct metering *metering,
	const struct deconvolve_timeline *timeline, struct arena *arena, struct fold *ret_fold);
/* Energy of several distinct columns together, for example a block with all blocks that ran inside it. Errors of
 * columns that can't be distinguished cancel in the sum, so its error is not the sum of their errors. */
struct deconvolve_energy deconvolve_energy_of(const struct fold *fold, const uint32_t *columns, size_t n);
struct deconvolve_energy deconvolve_domain_energy_of(const struct fold *fold, size_t domain, const uint32_t *columns,
	size_t n);
