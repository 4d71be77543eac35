/* Energy of each domain: how much, how wrong, whose. */
#pragma once

#include "analysis/energy/attribute.h"

struct metering { // what the blocks need again afterwards; in scratch memory
	struct metering_domain {
		struct curve curve;
		struct attribution attribution;
	} * domains; // as findings.domains
};

// Fills domains, total_j, error_j, provenance and ledger of *findings. -ENOMEM.
int domains_make(struct findings *findings, const struct windows *windows, struct arena *scratch,
	struct metering *ret_metering);
