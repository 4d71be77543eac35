/* What makes the findings of a run, beside its energy and its code blocks. */
#pragma once

#include "analysis/findings.h"

/* The measured GPUs, one by one: energy and power from findings->domains. -ENOMEM. */
int gpus_make(struct findings *findings);

/* gpu_tracker's ResourceUsage of a run, after findings->overall. Each maximum stands on its own: the largest total need not be the sum of
 * the largest parts. */
void usage_make(const struct findings *findings, const struct columns *columns, struct resource_usage *ret_usage);

/* Figures that the recorder keeps for a whole segment: CPU time, peaks, I/O, its own cost. Sums over segments, peaks are the largest.
 * Where a recorder died before it wrote its footer, the segment's last samples stand in; what they can't tell makes the figure unknown. */
void footer_figures(const struct run *run, struct findings *findings);
