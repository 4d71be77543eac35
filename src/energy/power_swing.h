/* How far power may have swung between two points of a counter, which show the mean alone. Rules in power_swing.c. */
#pragma once

#include "energy/curve.h"

#include <math.h>

struct power_range {
	double least_w, most_w;
};

struct power_swing { // beyond the mean power of a stretch
	double above_w, below_w;
};

// Sets `known` from `mw`. -ENOMEM.
int power_readings_index(struct power_readings *readings, struct arena *arena);

// A stretch of the counter's curve of this mean power; `beside` covers the powers of the stretches next to it.
struct power_swing power_swing_within(const struct curve *curve, int64_t from_ns, int64_t to_ns, double w,
	struct power_range beside);
// fmin without a call: this is asked for at both ends of each span.
static inline double swing_smaller(double a, double b)
{
	return a < b || isnan(b) ? a : b;
}

// How far the energy may be from the straight line, since_s after the begin of a stretch of length_s.
static inline double power_swing_j(struct power_swing swing, double since_s, double length_s)
{
	double left_s = length_s - since_s;
	double rises_j = swing_smaller(swing.above_w * since_s, swing.below_w * left_s);
	double falls_j = swing_smaller(swing.below_w * since_s, swing.above_w * left_s);
	return rises_j > falls_j || isnan(falls_j) ? rises_j : falls_j;
}

void power_range_add(struct power_range *range, double w); // NaN adds nothing
