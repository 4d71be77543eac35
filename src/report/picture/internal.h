/* What pictures are drawn with: elements of SVG whose colours are classes ("c-target" fills, "s-target" strokes), so that a page's style
 * sheet decides; a file of its own brings one with the light palette. No style attribute anywhere: a page's policy forbids them. */
#pragma once

#include "report/palette.h"
#include "report/picture/picture.h"

enum { TEXT_SIZE = 12, SMALL_TEXT_SIZE = 11 };

struct picture {
	const struct charts *charts;
	const struct findings *f;
	const struct picture_look *look;
	const char *id; // prefix of all ids in it
	enum picture_kind kind;
	struct buf *out;
	double width, height;
};

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

struct draw_style { // of an element
	enum colour colour;
	bool is_line;        // stroked, not filled
	double opacity;      // 0: 1
	double stroke_width; // 0: 1
	const char *dash;    // NULL: none
};

void draw_number(struct buf *out, double value); // a coordinate: to a tenth
void draw_attribute(struct picture *p, const char *name, double value);
void draw_line(struct picture *p, const struct draw_style *style, double x1, double y1, double x2, double y2);
void draw_rect(struct picture *p, const struct draw_style *style, double x, double y, double width, double height);
// The same, hatched: something that is estimated, or missing. `colour` is that of the lines.
void draw_hatched(struct picture *p, bool is_wide, double x, double y, double width, double height);
// <path …  d=" and what ends it; between them draw_to.
void draw_path_begin(struct picture *p, const struct draw_style *style);
void draw_path_hatched(struct picture *p);
void draw_to(struct picture *p, char command, double x, double y);
void draw_path_end(struct picture *p);

struct draw_text {
	double x, y; // of the base line
	enum anchor anchor;
	enum colour colour;
	double size; // 0: TEXT_SIZE
	bool is_bold;
	double turned; // degrees; 0: not
};
// Opens a <text>; what follows goes through draw_words, draw_name or straight into the buffer as digits.
void draw_text_begin(struct picture *p, const struct draw_text *text);
void draw_text_end(struct picture *p);
void draw_text(struct picture *p, const struct draw_text *text, const char *words);
// Text of ours, escaped.
void draw_words(struct buf *out, const char *words);
/* What somebody called something: only characters that XML knows, shut off from the direction of what is around it, and cut with an
 * ellipsis to about so many pixels of TEXT_SIZE (0: all of it, up to a length at which nobody reads on). */
void draw_name(struct buf *out, const char *name, double most_width);
double draw_width(const char *text, double size); // about how wide a text is

// <title> inside an element: what a pointer over it tells. Begin, words or names, end.
void draw_tip_begin(struct picture *p);
void draw_tip_end(struct picture *p);

/* Axes: of time, which is measured time and has pauses marked; and of values, in units chosen for people. */

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

/* A chart as a picture: frame and legend (chart_picture.c), what is in it (chart_series.c), and what it says in words (words.c). */

enum { COLUMNS_MAX = 1600 };

struct picture_column { // buckets that fall onto one pixel, or a single one that is wider
	size_t begin, end;
	double x0, x1;
	bool joins; // the column before it in the same segment
};

struct picture_point { // of a series in a column; NaN unknown
	double mean, low, high;
};

struct chart_picture {
	struct picture *p;
	const struct chart *chart;
	struct plot plot;
	struct value_axis axis;
	struct picture_column columns[COLUMNS_MAX];
	size_t n;
	bool is_decimated; // a column is more than one reading somewhere: it has a range to show
};

struct series_look {
	enum colour colour;
	const char *dash;
	bool is_area, is_hatched, is_shown, has_range;
	double width, opacity; // 0: opaque
};

struct series_look series_look(const struct chart_picture *c, const struct chart_series *series);
struct picture_point series_point(const struct chart_picture *c, const struct chart_series *series,
	const struct picture_column *column);
void series_draw(struct chart_picture *c);

void picture_chart(struct picture *p, const struct chart *chart);
double picture_chart_height(const struct picture *p, const struct chart *chart);

// words.c: what a person who can't see the picture should know.
void chart_words(struct buf *out, const struct charts *charts, const struct chart *chart);

/* The kinds of pictures that are no charts, a file each. Heights come first, as drawing needs them. */

bool ledger_has(const struct charts *charts);
double ledger_height(const struct picture *p);
void ledger_draw(struct picture *p);
void ledger_words(const struct charts *charts, struct buf *out);

bool flame_has(const struct charts *charts);
double flame_height(const struct picture *p);
void flame_draw(struct picture *p);
void flame_words(const struct charts *charts, struct buf *out);

bool blocks_has(const struct charts *charts);
double blocks_height(const struct picture *p);
void blocks_draw(struct picture *p);
void blocks_words(const struct charts *charts, struct buf *out);

bool spans_has(const struct charts *charts);
double spans_height(const struct picture *p);
void spans_draw(struct picture *p);
void spans_words(const struct charts *charts, struct buf *out);

void picture_heading(struct picture *p, const char *title); // bold, at the top
