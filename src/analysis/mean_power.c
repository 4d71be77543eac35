#include "analysis/findings.h"

#include <math.h>

struct mean_power findings_mean_power(const struct findings *findings)
{
	const double nothing_w = findings->total_j >= 0 ? 0 : (double)NAN;
	struct mean_power power = {.total_w = nothing_w, .target_w = nothing_w};
	for (size_t i = 0; i < findings->n_domains; i++) {
		const struct domain_finding *domain = &findings->domains[i];
		if (!domain->in_total || !(domain->energy_j > 0) || isnan(domain->mean_w))
			continue;
		power.total_w += domain->mean_w;
		power.target_w += domain->mean_w * domain->ledger.target_j / domain->energy_j;
	}
	// The relative error is that of the energy; a counter that never changed has only an absolute one.
	power.error_w = findings->total_j > 0 ? findings->error_j / findings->total_j * power.total_w
		: findings->duration_s > 0   ? findings->error_j / findings->duration_s
					     : (double)NAN;
	// A take-over between two readings is not a gap: the margin covers the offset between the two runs' clocks.
	power.of_part = power.total_w * findings->duration_s > findings->total_j * 1.01;
	return power;
}
