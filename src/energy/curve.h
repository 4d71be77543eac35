/* The energy of one domain as a function of time: points, straight lines between them.
 *
 * From a counter (curve_counter.c): the points are the counter's own updates, not the readings that showed them. A slow
 * counter repeats its value between two updates; those repeats only tell that there was no update yet.
 * From power (curve_power.c): the trapezoid rule between readings. Over a hole longer than max(5 intervals, 1 s) the
 * power is not known and nothing is invented: the line is flat there and the hole is remembered.
 *
 * The recorder reads on until the counter has moved once more after the target's end, and begins before its start, so
 * both ends usually lie between two points. Where they do not, the line goes on for a little with the last slope. */
#pragma once

#include "energy/updates.h"
#include "energy/slice.h"
#include "base/arena.h"
#include "base/util.h"
#include "store/run.h"

#include <stdbool.h>

struct curve_end {      // where the target started or ended between two updates: curve_ends.c
	double doubt_j; // half of a 95 % interval: power may have changed just there, or not; at both ends alike
	double bent_j;  // how far the energy may be from the bend, either way; 0: the line is straight
};

struct power_readings {           // of the device itself, beside its counter
	size_t n;                 // rows of the device
	const int64_t *t_ns, *mw; // VALUE_MISSING where there is none
	const uint64_t *known;    // a bit for each row: whether there is one
};

struct curve_segment {
	struct slice points;
	int64_t start_ns, end_ns;  // the target's life
	int64_t first_ns, last_ns; // how far the line goes on before the first point and beyond the last one …
	double first_w, last_w;    // … and how steep
	double offset_j;           // makes the energy of the run from its points
	struct curve_end start, end;
};

struct curve {
	size_t n;
	int64_t *t_ns;
	double *j;        // of a segment's points since its first; never falls
	double *within_s; // the point lies anywhere within t_ns ± this
	struct curve_segment *segments;
	size_t n_segments;
	struct updates updates;
	struct power_readings readings; // not from_power

	bool known;       // some energy could be had; else there are no points
	bool from_power;  // integrated power, no counter
	double stalled_s; // the counter stood still, when it should have moved, to the end or all the time
	double silent_s;  // between the first and the last reading of segments in which the counter never moved
	double unseen_s;  // the run is too short for the counter: nothing it showed says what was used in this time
	double outside_s; // of the run, without anybody who could read the device: no hole, no energy
	double hole_s;    // time in the target's life whose energy is not in the curve …
	double hole_squares_s2; // … and the sum of the squares of its pieces
	double rounding_j2;     // from_power: variance of the trapezoid rule, by second differences
	size_t missing_runs;    // how often the reading was lost for a while
	size_t long_holes;  // from_power: of the holes, those where no reading is missing but the samples themselves
	double max_power_w; // largest power reading; NaN if there is none
	double step_w;      // how much power changes from one stretch between points to the next: root mean square
	double average_s; // from_power: over how long the device itself averages its reading, as far as is known; else 0
	double held_s;    // from_power: how long the device shows one reading, as far as is known; else 0
};

// The counter where there is one that moves, else power. -ENOMEM.
int curve_make(const struct run *run, const struct run_device *device, int64_t interval_ns, struct arena *arena,
	struct curve *ret_curve);
// From power whatever the counter says; known is false if no power was read. -ENOMEM.
int curve_make_from_power(const struct run *run, const struct run_device *device, int64_t interval_ns,
	struct arena *arena, struct curve *ret_curve);
// What was not read for longer is not known meanwhile, whatever comes of it: energy, charts, traces.
static inline int64_t curve_hole_ns(int64_t interval_ns)
{
	bool is_slow = value_ok(interval_ns) && interval_ns > NS_PER_S / 5;
	return !is_slow ? NS_PER_S : interval_ns < INT64_MAX / 8 ? 5 * interval_ns : INT64_MAX / 2;
}
/* The same at instants in ascending order, without a search for each. Begin with {.curve = curve}. */
struct curve_walk {
	const struct curve *curve;
	bool any;
	size_t segment;
	size_t after;           // first point of the segment not before t_ns; past its last one if there is none
	int64_t from_ns;        // the line goes through from_j here …
	double from_j, slope_w; // … as steep as that
	int64_t t_ns;           // the instant, but within the target's life and the line
	double line_j;          // the line there
};
double curve_walk_to(struct curve_walk *walk, size_t index, int64_t t_ns);                        // as curve_at
double curve_walk_power_w(struct curve_walk *walk, size_t index, int64_t from_ns, int64_t to_ns); // as curve_power_w
// Energy of the run up to an instant of a segment; before the target's start and after its end nothing is added.
double curve_at(const struct curve *curve, size_t index, int64_t t_ns);
// The line itself: energy since the segment's first point, also before the target's start and after its end.
double curve_line_at(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns);
// The same near a point of the segment, which is found sooner.
double curve_line_near(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns, size_t point);
// Mean power over the part of a time for which there is a line; NaN: there is none.
double curve_power_w(const struct curve *curve, size_t index, int64_t from_ns, int64_t to_ns);
double curve_total_j(const struct curve *curve);
