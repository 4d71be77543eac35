/* Update behaviour of an energy counter: period, regularity and step size. The sampler measures the period and its jitter and
 * keeps them current; if it could not, they are derived from the readings. */
#pragma once

#include "base/arena.h"
#include "base/util.h"
#include "energy/slice.h"
#include "store/run.h"

#include <math.h>
#include <stdbool.h>

struct updates {
	double period_s;  // between two updates; NaN: unknown
	double jitter_s;  // maximum deviation of an update from the period; 0 if the period is unknown
	double quantum_j; // smallest step; 0: unknown
	double longest_s; // maximum age of an update: period and jitter, or an estimate if they are unknown
};

int updates_make(const struct run *run, const struct run_device *device, int64_t interval_ns,
	struct updates *ret_updates); // -ENOMEM

/* The energy of one domain as a function of time: points connected by straight lines.
 *
 * From a counter (curve_counter.c): the points are the counter's own updates, not the readings that showed them. A slow
 * counter repeats its value between two updates; repeats only show that there was no update yet. From power (curve_power.c):
 * the trapezoid rule between readings. In a hole longer than max(5 intervals, 1 s) the power is unknown and nothing is
 * invented: the line is flat there and the hole is recorded.
 *
 * The recorder starts before the target's start and reads until the counter has changed once more after the target's end, so
 * both ends usually lie between two points. Otherwise the line is extended briefly with the last slope. */

struct curve_end {      // a start or end of the target between two updates: curve_ends.c
	double uncertainty_j; // half of a 95 % interval: the power may or may not have changed at the end; same at both ends
	double bent_j;  // possible distance of the energy from the bent line, in either direction; 0: the line is straight
};

struct power_readings { // the device's power readings, in addition to its counter
	size_t n;       // number of device rows
	const int64_t *t_ns;
	struct run_values mw;
	const uint64_t *known; // bit mask over rows: whether there is a reading
};

struct curve_segment {
	struct slice points;
	int64_t start_ns, end_ns;  // the target's life
	int64_t first_ns, last_ns; // extent of the line before the first point and after the last one …
	double first_w, last_w;    // … and its slope there
	double offset_j;           // added to the energy of its points to get the energy of the run
	struct curve_end start, end;
};

struct curve {
	size_t n;
	int64_t *t_ns;
	double *j;        // energy since the segment's first point; never decreases
	double *within_s; // uncertainty of the time of a point: t_ns ± this
	struct curve_segment *segments;
	size_t n_segments;
	struct updates updates;
	struct power_readings readings; // unset if from_power

	bool known;       // the energy is known; else there are no points
	bool from_power;  // integrated power, not a counter
	double stalled_s; // time for which the counter failed to change, up to the end or in all
	double silent_s;  // time between the first and last reading of segments in which the counter never changed
	double unseen_s;  // the run is too short for the counter: no reading shows the energy used in this time
	double outside_s; // time of the run without a recorder that could read the device: neither hole nor energy
	double hole_s;    // time in the target's life whose energy is missing from the curve …
	double hole_squares_s2; // … and the sum of the squares of its parts
	double rounding_j2;     // from_power: variance of the trapezoid rule, from second differences
	size_t missing_runs;    // number of times the reading was lost for a while
	size_t long_holes;  // from_power: number of holes in which the samples themselves are missing, not the reading
	double max_power_w; // largest power reading; NaN: none
	double step_w;      // root mean square of the change of power between adjacent stretches
	double average_s; // from_power: averaging time of the device's reading, if known; else 0
	double held_s;    // from_power: time for which the device repeats a reading, if known; else 0
};

// Uses the counter if there is one that changes, else power. Returns -ENOMEM.
int curve_make(const struct run *run, const struct run_device *device, int64_t interval_ns, struct arena *arena,
	struct curve *ret_curve);
// Always uses power; `known` is false if no power was read. updates: of the device's counter; NULL: derive them. Returns
// -ENOMEM.
int curve_make_from_power(const struct run *run, const struct run_device *device, int64_t interval_ns,
	const struct updates *updates, struct arena *arena, struct curve *ret_curve);
// Longest time without readings that energy, charts and traces bridge; anything longer is unknown.
static inline int64_t curve_hole_ns(int64_t interval_ns)
{
	bool is_slow = value_ok(interval_ns) && interval_ns > NS_PER_S / 5;
	return !is_slow ? NS_PER_S : interval_ns < INT64_MAX / 8 ? 5 * interval_ns : INT64_MAX / 2;
}
/* Evaluates the curve at instants in ascending order without a search for each. Initialise with {.curve = curve}. */
struct curve_walk {
	const struct curve *curve;
	bool any;
	size_t segment;
	size_t after;           // first point of the segment not before t_ns; one past its last point if there is none
	int64_t from_ns;        // the line passes through from_j here …
	double from_j, slope_w; // … with this slope
	int64_t t_ns;           // the instant, clipped to the target's life and the line
	double line_j;          // energy of the line there
};
double curve_walk_to(struct curve_walk *walk, size_t index, int64_t t_ns);                        // see curve_at
double curve_walk_power_w(struct curve_walk *walk, size_t index, int64_t from_ns, int64_t to_ns); // see curve_power_w
// Energy of the run up to an instant of a segment. Nothing is added before the target's start or after its end.
double curve_at(const struct curve *curve, size_t index, int64_t t_ns);
// Energy of the line since the segment's first point, also before the target's start and after its end.
double curve_line_at(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns);
// Equal to curve_line_at, but faster if `near` is close to the instant.
double curve_line_near(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns, size_t point);
// Mean power over the part of an interval that the line covers; NaN: none.
double curve_power_w(const struct curve *curve, size_t index, int64_t from_ns, int64_t to_ns);
double curve_total_j(const struct curve *curve);

/* Possible variation of power between two points of a counter, which show only the mean. The rules are in power_swing.c. */

struct power_range {
	double min_w, max_w;
};

struct power_swing { // deviation from the mean power of a stretch
	double above_w, below_w;
};

// Sets `known` from `mw`. -ENOMEM.
int power_readings_index(struct power_readings *readings, struct arena *arena);

// For a stretch of the counter's curve with this mean power; `beside` is the range of power in the adjacent stretches.
struct power_swing power_swing_within(const struct curve *curve, int64_t from_ns, int64_t to_ns, double w,
	struct power_range beside);
// fmin without a function call: it is used at both ends of each span.
static inline double swing_smaller(double a, double b)
{
	return a < b || isnan(b) ? a : b;
}

// Maximum distance of the energy from the straight line, since_s after the start of a stretch of length_s.
static inline double power_swing_j(struct power_swing swing, double since_s, double length_s)
{
	double left_s = length_s - since_s;
	double rises_j = swing_smaller(swing.above_w * since_s, swing.below_w * left_s);
	double falls_j = swing_smaller(swing.below_w * since_s, swing.above_w * left_s);
	return rises_j > falls_j || isnan(falls_j) ? rises_j : falls_j;
}

void power_range_add(struct power_range *range, double w); // ignores NaN

/* Uncertainty of the energy at one instant: the contribution of the ends of a run and of its code blocks to an error. The
 * rules are at the top of edge.c, the measurements in docs/accuracy.md. */

struct edge_uncertainty {
	double variance_j2;
	double linear_j; // half of a 95 % interval of a possibly systematic part, which adds linearly
};

// Uncertainty of the energy between two instants of a segment.
struct edge_uncertainty edge_between(const struct curve *curve, size_t index, int64_t from_ns, int64_t to_ns);

/* The same for many instants in ascending order. */

struct edge_interval { // interval between two points, and its surroundings
	int64_t from_ns, to_ns;
	bool inside;                 // there are points on both sides; else the line extends beyond the last one
	size_t before;               // index of the preceding point; of the nearest one if !inside
	double length_s;             // time between the points; else of the last stretch
	double w, before_w, after_w; // NaN: unknown there
	double max_w;                // largest of the three
	double step_w;               // assumed change of power at this point
	struct power_swing swing;    // range of power within the stretch
};

enum { EDGE_POWER_POINTS = 8 }; // on each side

struct edge_power { // power around an instant, within the averaging time of the device
	const struct curve *curve;
	const struct curve_segment *segment;
	int64_t origin_ns, step_ns; // grid of evaluations; step 0: the device does not average
	int64_t first;              // grid index of w[0]
	bool any;
	double w[2 * EDGE_POWER_POINTS + 1];
	double min_w, max_w;
};
void edge_power_init(struct edge_power *near_power, const struct curve *curve, const struct curve_segment *segment,
	int64_t t_ns);
void edge_power_at(struct edge_power *near_power, int64_t t_ns);

struct edge_walk { // initialise with {.curve = curve}
	const struct curve *curve;
	bool any;
	size_t segment, after;       // location of the stretch
	struct edge_interval interval; // stretch around the latest instant …
	double since_s;              // … and the distance of that instant from the preceding or nearest point
	double within_s;             // of the points there
	struct edge_power near_power;
};

struct edge_point { // data kept for an instant
	size_t segment, before;
	bool inside;
	int64_t t_ns;
	double line_j, within_s;
	struct edge_uncertainty uncertainty; // of this end only
	double min_w, max_w;
};

void edge_walk_to(struct edge_walk *walk, const struct curve_walk *at, struct edge_point *ret_point);
// Uncertainty of the energy between an earlier instant and the latest one.
struct edge_uncertainty edge_walked(const struct edge_walk *walk, const struct edge_point *from,
	const struct edge_point *to);

/* The energy of one device between two instants, from any part of a run with readings around them, for example between two
 * steps of a running program. */

struct energy_between {
	double j;       // NaN: unknown, because readings are missing there
	double error_j; // half of a 95 % interval, from update times and power changes; excludes the meter's systematic error,
			// which is common to all its measurements
	double scale_error; // relative systematic error: 0.05 is 5 %; 0 if none is stated
	bool from_power;    // integrated power, not a counter
};

/* Counters are interpolated between their own updates, as for code blocks. Without a counter, power is integrated. The run's
 * segments determine which instants are ends of the program, at which power may change. interval_ns: sampling interval.
 * Returns -ENOMEM. */
int energy_between(const struct run *run, const struct run_device *device, int64_t interval_ns, int64_t from_ns,
	int64_t to_ns, struct energy_between *ret);
// Relative error of the sensor's calibration, in addition to error_j. NaN: unknown, as for all devices except GPUs.
double calibration_error(const struct run_device *device);
