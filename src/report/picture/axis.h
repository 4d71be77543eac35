/* Axes: of time, which is measured time and has pauses marked; and of values, in units chosen for people. */
#pragma once

#include "report/picture/draw.h"

struct plot { // where in a picture something is drawn
	double left, top, right, bottom;
	double above; // of a strip that stands on it
};

static inline double plot_width(const struct plot *plot)
{
	return plot->right - plot->left;
}

static inline double plot_height(const struct plot *plot)
{
	return plot->bottom - plot->top;
}

double axis_x(const struct picture *p, const struct plot *plot, double at_s);
// Ticks, their words, lines at pauses.
void axis_time(struct picture *p, const struct plot *plot);

struct value_axis {
	double low, high, step; // in the quantity's unit
	double size;            // of the unit that is shown, in that
	const char *unit;       // "kW"
	int decimals;
};

// From 0, or from the lowest value where `lowest` is above; highest: what must fit.
struct value_axis value_axis_make(const char *unit, double lowest, double highest, bool from_zero);
double value_axis_y(const struct value_axis *axis, const struct plot *plot, double value);
void value_axis_draw(struct picture *p, const struct plot *plot, const struct value_axis *axis);
// A value with its unit, three digits: "1.23 kW".
void value_words(struct buf *out, const char *unit, double value);
// "3 h 12 min", for words.
void time_words(struct buf *out, double seconds);
