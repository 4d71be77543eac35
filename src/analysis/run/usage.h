/* gpu_tracker's ResourceUsage of a run. */
#pragma once

#include "analysis/findings.h"

// Each maximum stands on its own: the largest total need not be the sum of the largest parts. After findings->overall.
void usage_make(const struct findings *findings, const struct columns *columns, struct resource_usage *ret_usage);
