/* Energy of each domain: how much, how wrong, whose. */
#pragma once

#include "analysis/energy/attribute.h"

struct metering { // what blocks, charts and traces need again afterwards
	struct metering_domain {
		struct curve curve;
		struct attribution attribution;
	} * domains; // as findings.domains
};

/* Fills domains, total_j, error_j, provenance and ledger of *findings; the metering lies in `arena` and points at the windows.
 * -ENOMEM. */
int domains_make(struct findings *findings, const struct windows *windows, struct arena *arena,
	struct metering *ret_metering);
