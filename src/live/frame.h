/* One picture of the terminal as cells, before anything is drawn: what the tests look at, and what `--once` prints. Nothing here
 * knows a terminal. Texts are UTF-8 of unknown origin: what is no character, controls the terminal or its direction of
 * writing becomes '?', and where the terminal has no UTF-8 so does all that is not ASCII. How wide a character is, wcwidth()
 * says, so LC_CTYPE must be set. */
#pragma once

#include "base/buf.h"
#include "report/palette.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { CELL_RUNES = 3 }; // one with a width, then what is put upon it: accents

enum look { LOOK_BOLD = 1, LOOK_FAINT = 2, LOOK_REVERSE = 4 };

struct pen {
	enum colour colour; // COLOUR_INK: the terminal's own
	unsigned int looks;
};

struct cell {
	wchar_t runes[CELL_RUNES]; // the rest is 0
	uint8_t width;             // 2: of this cell and the next, which has 0
	uint8_t colour;            // enum colour
	uint8_t looks;
};

struct area { // nothing is there when width or height is 0
	int x, y, width, height;
};

struct frame {
	int columns, rows;
	bool utf8;
	struct cell *cells; // owned; rows of `columns`
};

int frame_init(struct frame *frame, int columns, int rows, bool utf8); // all blank; -ENOMEM
void frame_finish(struct frame *frame);
void frame_clear(struct frame *frame);
const struct cell *frame_cell(const struct frame *frame, int x, int y);

// One character at a place; whatever lies outside the frame is left out.
void frame_rune(struct frame *frame, int x, int y, wchar_t rune, struct pen pen);
void frame_look(struct frame *frame, struct area area, unsigned int looks); // adds looks to all cells
// As plain text: no blanks at ends of lines.
void frame_text(const struct frame *frame, struct buf *out);

/* Signs that there are two of. */
enum sign { SIGN_MORE, SIGN_DOT, SIGN_DOWN, SIGN_UP, SIGN_BRANCH, SIGN_LAST, SIGN_TRUNK, SIGN_DEGREE, SIGNS };
const char *sign(const struct frame *frame, enum sign which);

/* A line that is written from left to right until its end; what does not fit is cut with a sign. */
struct line {
	struct frame *frame;
	int x, y, end; // the next cell, and the first one that is not its own
	bool is_cut;
};
struct line line_in(struct frame *frame, struct area area, int row); // row `row` of an area
void line_text(struct line *line, struct pen pen, const char *text);
void line_printf(struct line *line, struct pen pen, const char *format, ...) __attribute__((format(printf, 3, 4)));
void line_blank(struct line *line, int n);
void line_to(struct line *line, int x); // blanks up to a column of the frame; back: no
// In a column of its own, cut there; to its right or left.
void line_column(struct line *line, struct pen pen, const char *text, int width, bool to_right);
int text_width(const struct frame *frame, const char *text); // in cells
