/* How wrong the energy is at one instant: what the ends of a run and of its code blocks add to an error. Rules at the top
 * of edge.c, numbers in docs/accuracy.md. */
#pragma once

#include "analysis/curve.h"

struct edge_doubt {
	double variance_j2;
	double linear_j; // half of a 95 % interval that may go the same way each time: adds up instead
};

// Of the energy between two instants of a segment.
struct edge_doubt edge_between(const struct curve *curve, size_t index, int64_t from_ns, int64_t to_ns);
