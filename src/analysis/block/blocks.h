/* Code blocks: what each span's name cost over all its calls. */
#pragma once

#include "analysis/energy/domains.h"

/* Calls are counted one by one, recursion and threads included. Samples and energy belong to the block as a whole:
 * where calls of one name overlap, the time between the first begin and the last end counts once. */
int blocks_make(struct findings *findings, const struct columns *columns, const struct windows *windows,
	const struct metering *metering, struct arena *scratch); // -ENOMEM
