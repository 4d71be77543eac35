/* Counter against power: a domain that has both is measured twice. */
#pragma once

#include "energy/curve.h"
#include "analysis/findings.h"

// Fills integrated_j, integrated_error_j and disagrees of a domain whose energy comes from a counter. -ENOMEM.
int crosscheck(const struct findings *findings, struct domain_finding *domain, const struct curve *counter);
