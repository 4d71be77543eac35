/* Figures that the recorder keeps for a whole segment: CPU time, peaks, I/O, its own cost. */
#pragma once

#include "analysis/findings.h"

// Sums over segments, peaks are the largest. Where a recorder died before it wrote its footer, the segment's last
// samples stand in; what they can't tell makes the figure unknown.
void footer_figures(const struct run *run, struct findings *findings);
