/* How far power may have swung between two points of a counter, which show the mean alone. Rules in power_swing.c. */
#pragma once

#include "analysis/energy/curve.h"

struct power_range {
	double least_w, most_w;
};

struct power_swing { // beyond the mean power of a stretch
	double above_w, below_w;
};

// A stretch of the counter's curve of this mean power; `beside` covers the powers of the stretches next to it.
struct power_swing power_swing_within(const struct curve *curve, int64_t from_ns, int64_t to_ns, double w,
	struct power_range beside);
// How far the energy may be from the straight line, since_s after the begin of a stretch of length_s.
double power_swing_j(struct power_swing swing, double since_s, double length_s);

void power_range_add(struct power_range *range, double w); // NaN adds nothing
