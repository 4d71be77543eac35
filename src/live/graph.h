/* Values over time and parts of a whole, as cells. */
#pragma once

#include "live/frame.h"
#include "sensor/sensor.h"

enum graph_style {
	GRAPH_BRAILLE, // 2 x 4 dots a cell
	GRAPH_BLOCK,   // 1 x 8 steps a cell
	GRAPH_ASCII,   // 1 x 3 steps a cell
	GRAPH_STYLES
};
int graph_style_from_name(const char *name); // "braille", "block", "ascii"; or -EINVAL

struct graph {
	enum graph_style style;
	const double *values; // n, the newest last, at the right edge; NaN unknown: nothing is drawn there
	const double *parts;  // of each value, which is drawn in part_pen; NULL: none
	size_t n;
	double top; // value of the upper edge
	struct pen pen, part_pen;
};
size_t graph_room(enum graph_style style, int width); // how many values go into so many cells
// A known 0 has the lowest dot, so that it differs from what is unknown.
void graph_draw(struct frame *frame, struct area area, const struct graph *graph);
// The least of 1, 2, 5 times a power of ten that is no smaller: a scale that stands still while values move. At least `least`.
double graph_top(double value, double least);

/* A bar in one row: segments one after another, each a share of the width. What they are made of tells of them without colour. */
enum fill { FILL_SOLID, FILL_DENSE, FILL_HALF, FILL_STRIPES, FILL_THIN, FILL_DOT, FILLS };
struct bar_segment {
	double share; // of the whole; NaN and less than 0 are nothing
	enum fill fill;
	enum colour colour;
};
void bar_draw(struct frame *frame, struct area area, enum graph_style style, const struct bar_segment *segments,
	size_t n);
const char *fill_sign(const struct frame *frame, enum fill fill); // one cell of it
enum fill fill_of(enum provenance provenance);                    // measured is solid, estimated is hatched
