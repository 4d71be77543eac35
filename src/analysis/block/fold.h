/* Folding: what code blocks cost whose calls are shorter than the time between two updates of a counter.
 *
 * One call is invisible to such a counter, but over many calls each interval between two updates holds another mixture of
 * blocks, and   energy of the interval = sum over blocks of (power of the block × its time in the interval)   is one
 * equation an interval. Least squares over all intervals give the power of each block; docs/accuracy.md has the method
 * and when it resolves what. Pure, like all of analysis/. */
#pragma once

#include "analysis/energy/domains.h"

/* The target's time, dealt out to columns: column 0 is the time outside of all spans, the others are the caller's (one for
 * each path of names, or one for each name, by its innermost span). At each instant the weights of all pieces add up to 1
 * at most, where threads share the time; what is missing there is column 0's, so it needs no pieces.
 * Pieces are ordered by begin_ns. Those that overlap begin and end together. Instants outside of the run's segments count
 * for nothing. */
struct fold_piece {
	int64_t begin_ns, end_ns;
	uint32_t column;
	float weight; // above 0, at most 1
};

struct fold_timeline {
	const struct fold_piece *pieces;
	size_t n_pieces;
	size_t n_columns; // column 0 included
};

struct fold_energy {
	double j, error_j; // attributed to the target; error_j: half of a 95 % interval. NaN: nothing was measured
};

struct fold_column {
	double time_s;           // weighted, in the run
	double power_w, error_w; // attributed to the target, while it ran; NaN: no time, or nothing was measured
	bool folded;             // the equations told its power from the others', not the straight line between updates
};

struct fold_domain;
struct fold {
	size_t n_columns, n_domains;
	struct fold_column *columns;        // over the domains in the total
	const struct fold_domain **domains; // as findings.domains; NULL: nothing was measured
	const struct findings *findings;
};

/* Whether the calls are so short and so many that folding tells more than the straight line between two updates.
 * mean_call_s: of uninterrupted pieces of the block; calls: their number. */
bool fold_helps(const struct findings *findings, const struct metering *metering, double mean_call_s, int64_t calls);
/* Everything in `arena`; findings and metering must outlive the fold. The energies of all columns add up to the target's
 * energy in the ledger, domain by domain. -ENOMEM. */
int fold_make(const struct findings *findings, const struct metering *metering, const struct fold_timeline *timeline,
	struct arena *arena, struct fold *ret_fold);
/* Of several columns together, each named once: a block with all that ran inside it. Errors of columns that can't be
 * told apart cancel in their sum, so this is not the sum of their errors. */
struct fold_energy fold_energy_of(const struct fold *fold, const uint32_t *columns, size_t n);
struct fold_energy fold_domain_energy_of(const struct fold *fold, size_t domain, const uint32_t *columns, size_t n);
