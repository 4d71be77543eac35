/* The energies of a run over time, and a grid of instants for powers.
 *
 * The grid consists of the ends of the windows over which a run is divided among programs, at least 0.1 s apart, and of
 * each segment's start and end. Each power is the mean from halfway to the previous instant to halfway to the next one.
 * The trapezoid rule over the grid then gives the segment's energy exactly, whatever the counter's update period. */
#pragma once

#include "analysis/energy/domains.h"
#include "analysis/findings.h"

struct timeline {
	const struct run *run;
	struct findings findings; // with domains, total_j and ledger
	struct metering metering; // same index as findings.domains
	struct windows windows;
	int64_t *t_ns;           // the grid, ascending
	struct slice *intervals; // the grid's range for each segment; empty for a segment without duration
};

int timeline_make(const struct run *run, struct arena *arena, struct timeline *ret_timeline); // -ENOMEM
/* As timeline_make, from findings, which already have the energies and must outlive the timeline. -ENOMEM; -EINVAL
 * after findings_drop_times. */
int timeline_of(const struct findings *findings, struct arena *arena, struct timeline *ret_timeline);
// The instants halfway to the neighbours, or the segment's ends.
int64_t timeline_before_ns(const struct timeline *timeline, struct slice interval, size_t instant);
int64_t timeline_after_ns(const struct timeline *timeline, struct slice interval, size_t instant);

/* The sum of some domains at the grid's instants. While one of them could not be read there is no power, and the
 * neighbouring instants cover that time too. The ends of a segment always have a power if the segment has the domains. */
struct timeline_track {
	double *all_w, *target_w; // at each instant; NaN: unknown
};
// n domains, by index in findings.domains. -ENOMEM.
int timeline_track_make(const struct timeline *timeline, const size_t *domains, size_t n, struct arena *arena,
	struct timeline_track *ret_track);

/* The energy attributed to the target while each single span ran, inner spans included: the figures of spans in traces
 * and pictures. A block's own figure (block_finding.total_j) counts the overlap of two of its calls once, and can be
 * deconvolved. This figure is interpolated linearly between counter updates, so for spans shorter than an update period it
 * is an average, not a measurement. */

/* ret_energy_j and ret_error_j: arrays of run.n_spans in `arena`; error_j is half of a 95 % interval of the sum over
 * domains in the total. NaN: the span has not ended, or no energy is known. ret_error_j may be NULL: no errors are
 * computed. -ENOMEM; -EINVAL after findings_drop_times. */
int spans_energy(const struct findings *findings, struct arena *arena, double **ret_energy_j, double **ret_error_j);
