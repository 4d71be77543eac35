/* Shared declarations of curve.c, curve_counter.c and curve_power.c, which build a curve one segment after another. */
#pragma once

#include "energy/curve.h"

// A counter without changes counts as stuck after this time, and only if it has missed an update.
enum { CURVE_STUCK_MIN_MS = 1000 };

struct curve_bracket { // an update: possible times, and its energy
	int64_t low_ns, high_ns;
	double j;
	bool next;    // directly follows the update of the previous bracket
	bool stamped; // the time comes from the counter or from the helper's read
};

struct curve_builder {
	const struct run *run;
	const struct run_device *device;
	int64_t hole_ns; // power readings further apart leave a hole
	struct curve *curve;
	struct curve_bracket *brackets; // scratch, one entry per sample of the device
	struct run_values power_mw;     // column to integrate
};

void curve_add_point(struct curve *curve, int64_t t_ns, double j, double within_s);
void curve_add_hole(struct curve *curve, int64_t from_ns, int64_t to_ns);
/* Add the points of one segment, the slope of the line beyond both ends, holes and the other members of *curve.
 * curve->segments[index] already has start_ns and end_ns. */
void curve_counter_segment(struct curve_builder *b, size_t index, struct slice samples);
void curve_power_segment(struct curve_builder *b, size_t index, struct slice samples);
// Bends the line where the target starts and ends. Call when the points of the segment exist.
void curve_bend_ends(struct curve_builder *b, struct curve_segment *segment, struct slice samples);
// Whether the sensor was read in full, not by a quick counter read.
bool curve_was_sampled(const struct run *run, int64_t t_ns);
// Whether the counter has two different values in one segment: one value gives no difference.
bool curve_counter_changes(const struct run *run, const struct run_device *device);
// Half of a 95 % interval of the energy between two instants `seconds` apart, without the meter's systematic error.
double between_error_j(const struct curve *curve, struct edge_uncertainty uncertainty, double seconds);
