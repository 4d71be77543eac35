/* How wrong the energy is at one instant: what the ends of a run and of its code blocks add to an error. Rules at the top
 * of edge.c, numbers in docs/accuracy.md. */
#pragma once

#include "energy/curve.h"
#include "energy/power_swing.h"

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
