/* What the target was attributed while each single span ran, inner spans included: the figures that traces and pictures put on a
 * span. A block's own figure (block_finding.total_j) counts time in which two of its calls overlap once, and may be folded; this one
 * is the straight line between updates of the counters, so for spans shorter than those it is an average, not a measurement. */
#pragma once

#include "analysis/energy/timeline.h"
#include "analysis/findings.h"

/* ret_energy_j and ret_error_j: run.n_spans each, the caller's (in `arena`); error_j is half of a 95 % interval of the sum over
 * domains in the total. NaN: not ended, or no energy is known. ret_error_j may be NULL: then none is made. -ENOMEM. */
int spans_energy(const struct findings *findings, struct arena *arena, double **ret_energy_j, double **ret_error_j);
// The same for those who have the energies along the time already.
int spans_energy_along(const struct findings *findings, const struct timeline *timeline, struct arena *arena,
	double **ret_energy_j, double **ret_error_j);
