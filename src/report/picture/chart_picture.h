/* A chart as a picture: frame and legend (chart_picture.c), what is in it (chart_series.c), and what it says in words (words.c). */
#pragma once

#include "report/picture/axis.h"

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
