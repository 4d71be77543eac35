/* Parts of a run's findings other than energy and code blocks. */
#pragma once

#include "analysis/findings.h"

/* The measured GPUs, with energy and power from findings->domains. -ENOMEM. */
int gpus_make(struct findings *findings);

/* gpu_tracker's ResourceUsage of a run; call it after findings->overall is set. The maxima are independent: the largest
 * total need not be the sum of the largest parts. */
void usage_make(const struct findings *findings, const struct columns *columns, struct resource_usage *ret_usage);

/* Figures that the recorder stores per segment: CPU time, peaks, I/O, its own overhead. Sums over segments; peaks are
 * maxima. If a recorder died before it wrote its footer, the segment's last samples replace it; a figure that they do
 * not have is unknown. */
void footer_figures(const struct run *run, struct findings *findings);

/* functions_energy.c: energy and CPU time of each sample of a profile. -ENOMEM. */
struct sample_share {
	double energy_j, cpu_s;
};
int functions_shares(const struct findings *findings, const struct run_profile_data *profile, struct arena *arena,
	struct sample_share **ret_shares);
// Whether the energy of a domain is known, in the total, and divided among functions.
bool functions_divide_domain(const struct findings *findings, size_t domain);
