/* The energy of one domain as a function of time: points, straight lines between them.
 *
 * From a counter: the points are the samples at which it moved. A slow counter repeats its value between two updates;
 * those repeats are left out, so that energy is interpolated between updates and not between readings.
 * From power: the trapezoid rule between readings. Over a hole longer than max(5 intervals, 1 s) the power is not
 * known and nothing is invented: the line is flat there and the hole is remembered. */
#pragma once

#include "analysis/slice.h"
#include "base/arena.h"
#include "store/run.h"

#include <stdbool.h>

struct curve {
	size_t n;
	int64_t *t_ns;
	double *j;              // since the first point, pauses between segments without growth; never falls
	struct slice *segments; // which points are whose

	bool known;             // some energy could be had; else there are no points
	bool from_power;        // integrated power, no counter
	double hole_s;          // time in the target's life whose energy is not in the curve …
	double hole_squares_s2; // … and the sum of the squares of its pieces
	double rounding_j2;     // from_power: variance of the trapezoid rule, by second differences
	size_t missing_runs;    // how often the reading was lost for a while
	size_t long_holes; // from_power: of the holes, those where no reading is missing but the samples themselves
	double smallest_step_s; // counter: least time between two changes; NaN if it changed less than three times
	double sample_s;        // mean distance of samples; NaN if there are no two
	double max_power_w;     // largest power reading; NaN if there is none
};

int curve_make(const struct run *run, const struct run_device *device, int64_t interval_ns, struct arena *arena,
	struct curve *ret_curve); // -ENOMEM
// Energy up to an instant of a segment, as seen inside that segment.
double curve_at(const struct curve *curve, size_t segment, int64_t t_ns);
// Mean power over the part of a time for which there are points; NaN: there are none.
double curve_power_w(const struct curve *curve, size_t segment, int64_t from_ns, int64_t to_ns);
double curve_total_j(const struct curve *curve);
