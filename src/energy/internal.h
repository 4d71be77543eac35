/* How curve.c, curve_counter.c and curve_power.c make a curve together, one segment after the other. */
#pragma once

#include "energy/curve.h"

// A counter that stands still is called stuck after this long, and not before it has missed an update.
enum { CURVE_STUCK_MIN_MS = 1000 };

struct curve_bracket { // an update: when it may have come, and the energy it brought
	int64_t low_ns, high_ns;
	double j;
	bool next;    // it is the first one after the bracket before it
	bool stamped; // the time is the counter's own, or that of the helper's reading
};

struct curve_builder {
	const struct run *run;
	const struct run_device *device;
	int64_t hole_ns; // power: longer pauses are holes
	struct curve *curve;
	struct curve_bracket *brackets; // scratch, as long as the device's samples
	struct run_values power_mw;     // the column that is integrated
};

void curve_add_point(struct curve *curve, int64_t t_ns, double j, double within_s);
void curve_add_hole(struct curve *curve, int64_t from_ns, int64_t to_ns);
/* Add the points of one segment and say how the line goes on at both ends; holes and the rest of *curve likewise.
 * curve->segments[index] has start_ns and end_ns already. */
void curve_counter_segment(struct curve_builder *b, size_t index, struct slice samples);
void curve_power_segment(struct curve_builder *b, size_t index, struct slice samples);
// Once the points of a segment are there: has the power change where the target starts and ends.
void curve_bend_ends(struct curve_builder *b, struct curve_segment *segment, struct slice samples);
// The sensor was asked for all it has, not only for a quick look at the counter.
bool curve_was_sampled(const struct run *run, int64_t t_ns);
// Two values of a counter in one segment, and different ones: a difference. One value makes none.
bool curve_counter_speaks(const struct run *run, const struct run_device *device);
// Half of a 95 % interval of the energy between two instants so far apart, without what the meter is off by always.
double between_error_j(const struct curve *curve, struct edge_doubt doubt, double seconds);
