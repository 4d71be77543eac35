/* How an energy counter moves: how often, how regularly, in which steps. The sampler measures the period and its jitter
 * and keeps them up; where it could not, the readings themselves tell. */
#pragma once

#include "base/arena.h"
#include "base/util.h"
#include "energy/slice.h"
#include "store/run.h"

#include <math.h>
#include <stdbool.h>

struct updates {
	double period_s;  // between two updates; NaN unknown
	double jitter_s;  // an update comes this much early or late; 0 where the period is unknown
	double quantum_j; // smallest step; 0 unknown
	double longest_s; // an update is at most this old: period and jitter, or a guess where they are unknown
};

int updates_make(const struct run *run, const struct run_device *device, int64_t interval_ns,
	struct updates *ret_updates); // -ENOMEM

/* The energy of one domain as a function of time: points, straight lines between them.
 *
 * From a counter (curve_counter.c): the points are the counter's own updates, not the readings that showed them. A slow
 * counter repeats its value between two updates; those repeats only tell that there was no update yet.
 * From power (curve_power.c): the trapezoid rule between readings. Over a hole longer than max(5 intervals, 1 s) the
 * power is not known and nothing is invented: the line is flat there and the hole is remembered.
 *
 * The recorder reads on until the counter has moved once more after the target's end, and begins before its start, so
 * both ends usually lie between two points. Where they do not, the line goes on for a little with the last slope. */

struct curve_end {      // where the target started or ended between two updates: curve_ends.c
	double doubt_j; // half of a 95 % interval: power may have changed just there, or not; at both ends alike
	double bent_j;  // how far the energy may be from the bend, either way; 0: the line is straight
};

struct power_readings { // of the device itself, beside its counter
	size_t n;       // rows of the device
	const int64_t *t_ns;
	struct run_values mw;
	const uint64_t *known; // a bit for each row: whether there is one
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
// From power whatever the counter says; known is false if no power was read. updates: of its counter; NULL: to be found. -ENOMEM.
int curve_make_from_power(const struct run *run, const struct run_device *device, int64_t interval_ns,
	const struct updates *updates, struct arena *arena, struct curve *ret_curve);
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

/* How far power may have swung between two points of a counter, which show the mean alone. Rules in power_swing.c. */

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

/* How wrong the energy is at one instant: what the ends of a run and of its code blocks add to an error. Rules at the top
 * of edge.c, numbers in docs/accuracy.md. */

struct edge_doubt {
	double variance_j2;
	double linear_j; // half of a 95 % interval that may go the same way each time: adds up instead
};

// Of the energy between two instants of a segment.
struct edge_doubt edge_between(const struct curve *curve, size_t index, int64_t from_ns, int64_t to_ns);

/* The same for very many instants in ascending order. */

struct edge_stretch { // between two points, and its surroundings
	int64_t from_ns, to_ns;
	bool inside;                 // there is a point on both sides; else the line goes on beyond the last one
	size_t before;               // index of the point before; of the nearest one if !inside
	double length_s;             // between the points; else of the last stretch
	double w, before_w, after_w; // NaN: nothing is known there
	double most_w;               // of the three
	double step_w;               // what power may change by here
	struct power_swing swing;    // range of power within the stretch
};

enum { EDGE_LOOKS = 8 }; // on each side

struct edge_look { // what power is around an instant: within the time that the device averages over
	const struct curve *curve;
	const struct curve_segment *segment;
	int64_t origin_ns, step_ns; // of the grid of looks; step 0: the device doesn't average
	int64_t first;              // number of w[0] on the grid
	bool any;
	double w[2 * EDGE_LOOKS + 1];
	double least_w, most_w;
};
void edge_look_init(struct edge_look *look, const struct curve *curve, const struct curve_segment *segment,
	int64_t t_ns);
void edge_look_at(struct edge_look *look, int64_t t_ns);

struct edge_walk { // begin with {.curve = curve}
	const struct curve *curve;
	bool any;
	size_t segment, after;       // where the stretch is from
	struct edge_stretch stretch; // around the latest instant …
	double since_s;              // … which is this far from the point before, or from the nearest one
	double within_s;             // of the points there
	struct edge_look look;
};

struct edge_point { // what is to be kept of an instant
	size_t segment, before;
	bool inside;
	int64_t t_ns;
	double line_j, within_s;
	struct edge_doubt doubt; // of this end alone
	double least_w, most_w;
};

struct edge_point edge_walk_to(struct edge_walk *walk, const struct curve_walk *at);
// Of the energy between an earlier instant and the latest one.
struct edge_doubt edge_walked(const struct edge_walk *walk, const struct edge_point *from, const struct edge_point *to);

/* The energy of one device between two instants, from whatever part of a run holds readings around them: what lies between two
 * steps of a program that still runs, say. */

struct energy_between {
	double j;       // NaN: it could not be had: no reading there, or a hole among them
	double error_j; // half of a 95 % interval, from when the counter was updated and how power changed; without what the
			// meter is off by always, which is the same for all that it meters
	double scale_error; // that: 0.05 is 5 %; 0 where nobody states one
	bool from_power;    // integrated power, no counter
};

/* Counters are interpolated between their own updates, as for code blocks; power is integrated where there is no counter. The
 * segments of the run tell which instants are ends of the program, at which power may change. interval_ns: of the samples. -ENOMEM. */
int energy_between(const struct run *run, const struct run_device *device, int64_t interval_ns, int64_t from_ns,
	int64_t to_ns, struct energy_between *ret);
// Of the sensor's calibration, beside error_j: relative. NaN: nothing is known of it, as of all but GPUs.
double calibration_error(const struct run_device *device);
