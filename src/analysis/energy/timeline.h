/* The energies of a run along its time, and a grid of instants to write powers at.
 *
 * The grid is the ends of the windows over which a run is divided among programs, so a tenth of a second apart at least, with
 * each segment's start and end. A power that is the mean from half way to the instant before to half way to the next one has
 * the trapezoid rule over the grid give the energy of the segment exactly, whatever the counter's pace. */
#pragma once

#include "analysis/energy/domains.h"
#include "analysis/findings.h"

struct timeline {
	const struct run *run;
	struct findings findings; // its domains, total_j and ledger
	struct metering metering; // as findings.domains
	struct windows windows;
	int64_t *t_ns;           // the grid, ascending
	struct slice *stretches; // the part of the grid that is a segment's; empty for one without duration
};

int timeline_make(const struct run *run, struct arena *arena, struct timeline *ret_timeline); // -ENOMEM
/* The same of findings, which know the energies already and must outlive the timeline. -ENOMEM; -EINVAL after
 * findings_forget_times. */
int timeline_of(const struct findings *findings, struct arena *arena, struct timeline *ret_timeline);
// The instants half way to the neighbours, or the segment's ends.
int64_t timeline_before_ns(const struct timeline *timeline, struct slice stretch, size_t instant);
int64_t timeline_after_ns(const struct timeline *timeline, struct slice stretch, size_t instant);

/* Some domains added up, at the instants of the grid. Where one of them could not be read meanwhile there is no power, and
 * its neighbours stand for that time too; at a segment's ends there always is one, if the domains are known in the segment. */
struct timeline_track {
	double *all_w, *target_w; // at each instant; NaN: none
};
// n domains, by their place in findings.domains. -ENOMEM.
int timeline_track_make(const struct timeline *timeline, const size_t *domains, size_t n, struct arena *arena,
	struct timeline_track *ret_track);

/* What the target was attributed while each single span ran, inner spans included: the figures that traces and pictures put on a
 * span. A block's own figure (block_finding.total_j) counts time in which two of its calls overlap once, and may be folded; this one
 * is the straight line between updates of the counters, so for spans shorter than those it is an average, not a measurement. */

/* ret_energy_j and ret_error_j: run.n_spans each, the caller's (in `arena`); error_j is half of a 95 % interval of the sum over
 * domains in the total. NaN: not ended, or no energy is known. ret_error_j may be NULL: then none is made. -ENOMEM. */
int spans_energy(const struct findings *findings, struct arena *arena, double **ret_energy_j, double **ret_error_j);
// The same for those who have the energies along the time already.
int spans_energy_along(const struct findings *findings, const struct timeline *timeline, struct arena *arena,
	double **ret_energy_j, double **ret_error_j);
