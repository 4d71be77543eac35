/* The energies of a run along its time, and a grid of instants to write powers at.
 *
 * The grid is the ends of the windows over which a run is divided among programs, so a tenth of a second apart at least, with
 * each segment's start and end. A power that is the mean from half way to the instant before to half way to the next one has
 * the trapezoid rule over the grid give the energy of the segment exactly, whatever the counter's pace. */
#pragma once

#include "analysis/energy/domains.h"

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
