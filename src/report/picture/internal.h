/* SVG drawing primitives. Colours are classes ("c-target" fills, "s-target" strokes), so that a page's style sheet defines
 * them; a stand-alone file includes a style sheet with the light palette. Style attributes are not used, because a page's
 * policy forbids them. */
#pragma once

#include "report/palette.h"
#include "report/picture/picture.h"

enum { TEXT_SIZE = 12, SMALL_TEXT_SIZE = 11 };

struct picture {
	const struct charts *charts;
	const struct findings *f;
	const struct picture_style *look;
	const char *id; // prefix of all ids
	enum picture_kind kind;
	struct buf *out;
	double width, height;
};

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

struct draw_style { // style of an element
	enum colour colour;
	bool is_line;        // stroked, not filled
	double opacity;      // 0 means 1
	double stroke_width; // 0 means 1
	const char *dash;    // NULL: none
};

void draw_number(struct buf *out, double value); // writes a coordinate with one decimal
void draw_attribute(struct picture *p, const char *name, double value);
void draw_line(struct picture *p, const struct draw_style *style, double x1, double y1, double x2, double y2);
void draw_rect(struct picture *p, const struct draw_style *style, double x, double y, double width, double height);
// A hatched rectangle, for estimated or missing values. `colour` is the colour of the lines.
void draw_hatched(struct picture *p, bool is_wide, double x, double y, double width, double height);
// draw_path_begin opens a <path>, draw_to adds points, draw_path_end closes it.
void draw_path_begin(struct picture *p, const struct draw_style *style);
void draw_path_hatched(struct picture *p);
void draw_to(struct picture *p, char command, double x, double y);
void draw_path_end(struct picture *p);

struct draw_text {
	double x, y; // of the baseline
	enum anchor anchor;
	enum colour colour;
	double size; // 0 means TEXT_SIZE
	bool is_bold;
	double turned; // rotation, degrees
};
// Opens a <text>; the content follows through draw_string or draw_name, or as digits directly into the buffer.
void draw_text_begin(struct picture *p, const struct draw_text *text);
void draw_text_end(struct picture *p);
void draw_text(struct picture *p, const struct draw_text *text, const char *words);
// Writes wattle's own text, escaped.
void draw_string(struct buf *out, const char *words);
/* Writes a name from a program or machine: only characters allowed in XML, isolated from the surrounding text direction,
 * truncated with an ellipsis to about `max_width` pixels at TEXT_SIZE (0: NAME_MAX characters). */
void draw_name(struct buf *out, const char *name, double max_width);
double draw_width(const char *text, double size); // approximate width of a text, pixels

// <title> within an element, shown as a tooltip. Write its text between begin and end.
void draw_tip_begin(struct picture *p);
void draw_tip_end(struct picture *p);

/* Axes: measured time with marks at pauses; values in readable units. */

struct plot { // plot area within a picture
	double left, top, right, bottom;
	double above; // height of a strip above it
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
// Draws ticks, labels, and lines at pauses.
void axis_time(struct picture *p, const struct plot *plot);

struct value_axis {
	double low, high, step; // in the unit of the quantity
	double size;            // of the displayed unit, in the unit of the quantity
	const char *unit;       // "kW"
	int decimals;
};

// Starts at `lowest`, or with from_zero at 0 if `lowest` is positive; contains `highest`.
struct value_axis value_axis_make(const char *unit, double lowest, double highest, bool from_zero);
double value_axis_y(const struct value_axis *axis, const struct plot *plot, double value);
void value_axis_draw(struct picture *p, const struct plot *plot, const struct value_axis *axis);
// A value with unit and three digits: "1.23 kW".
void value_text(struct buf *out, const char *unit, double value);
// "3 h 12 min", for text.
void time_text(struct buf *out, double seconds);

/* Charts as pictures: frame and legend (chart_picture.c), series (chart_series.c), text description (description.c). */

enum { COLUMNS_MAX = 1600 };

struct picture_column { // the buckets of one pixel, or one bucket wider than a pixel
	size_t begin, end;
	double x0, x1;
	bool joins; // continues the previous column in the same segment
};

struct picture_point { // value of a series in a column; NaN: unknown
	double mean, low, high;
};

struct chart_picture {
	struct picture *p;
	const struct chart *chart;
	struct plot plot;
	struct value_axis axis;
	struct picture_column columns[COLUMNS_MAX];
	size_t n;
	bool is_decimated; // some column contains several readings, so there is a range to draw
};

struct series_style {
	enum colour colour;
	const char *dash;
	bool is_area, is_hatched, is_shown, has_range;
	double width, opacity; // opacity 0: opaque
};

struct series_style series_style(const struct chart_picture *c, const struct chart_series *series);
struct picture_point series_point(const struct chart_picture *c, const struct chart_series *series,
	const struct picture_column *column);
void series_draw(struct chart_picture *c);

void picture_chart(struct picture *p, const struct chart *chart);
double picture_chart_height(const struct picture *p, const struct chart *chart);

// description.c: describes the chart for readers who cannot see it.
void chart_description(struct buf *out, const struct charts *charts, const struct chart *chart);

/* Pictures other than charts, one file each. Drawing needs their heights first. */

bool ledger_has(const struct charts *charts);
double ledger_height(const struct picture *p);
void ledger_draw(struct picture *p);
void ledger_description(const struct charts *charts, struct buf *out);

bool flame_has(const struct charts *charts);
double flame_height(const struct picture *p);
void flame_draw(struct picture *p);
void flame_description(const struct charts *charts, struct buf *out);

bool blocks_has(const struct charts *charts);
double blocks_height(const struct picture *p);
void blocks_draw(struct picture *p);
void blocks_description(const struct charts *charts, struct buf *out);

bool spans_has(const struct charts *charts);
double spans_height(const struct picture *p);
void spans_draw(struct picture *p);
void spans_description(const struct charts *charts, struct buf *out);

void picture_heading(struct picture *p, const char *title); // bold, at the top
