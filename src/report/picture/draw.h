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
