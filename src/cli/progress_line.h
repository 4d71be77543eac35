/* The line of --progress, as a pure function of its figures. */
#pragma once

#include "analysis/forecast/forecast.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress_figures {
	double elapsed_s, energy_j, power_w; // NaN unknown
	bool is_estimated;                   // joules and watts: "~" stands before them, as in `wattle top`
	const char *step;                    // --step; NULL: nothing is counted
	int64_t steps, all_steps;            // VALUE_MISSING: --steps was not given
	struct forecast forecast;
};

/* Without a newline; at most `width` columns, as far as that goes: what tells least is left out first. 0: any width. */
void progress_line(const struct progress_figures *figures, size_t width, struct buf *out);
