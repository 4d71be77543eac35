/* Code blocks: the figures of each span name over all its calls. */
#pragma once

#include "analysis/energy/domains.h"

/* Calls are counted individually, including recursion and threads. Samples and energy belong to the block as a whole:
 * where calls of one name overlap, the time between the first begin and the last end counts once. */
int blocks_make(struct findings *findings, const struct columns *columns, const struct windows *windows,
	const struct metering *metering, struct arena *scratch); // -ENOMEM
