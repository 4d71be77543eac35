/* Text for a terminal of 80 columns: styles, and tables whose columns are as wide as what stands in them. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { TEXT_WIDTH = 80, TABLE_COLUMNS_MAX = 12 };

struct style { // escape sequences, all "" without colour
	const char *title, *faint, *good, *warning, *bad, *off;
};
const struct style *style_for(bool colour);

size_t text_columns(const char *text, size_t size); // UTF-8 characters
/* Names come from programs and machines, and a terminal obeys control characters: "?" is printed for those, and a blank
 * for a line break, here and in the next two. */
void text_add_harmless(struct buf *out, const char *text, size_t size);
// At most this many columns of a text; what is cut off is shown as "…". keep_end: of a path the end tells more.
void text_fit(struct buf *out, const char *text, size_t columns, bool keep_end);
// Words of a text, wrapped at TEXT_WIDTH; further lines begin at column `indent`. No newline at the end.
void text_wrap(struct buf *out, size_t line_start, size_t indent, const char *text);

// The same, with the "…" in the middle: of a long name both ends tell something.
void text_fit_middle(struct buf *out, const char *text, size_t columns);

struct table_column {
	const char *title;
	bool right;  // numbers
	bool middle; // what is too wide is cut there, else at its begin; such a column gives way as the first does
};

/* Cells are appended one after the other, row by row; the first column gives way when the table is too wide,
 * of several that do the widest. */
struct table {
	const struct table_column *columns;
	size_t n_columns;
	size_t n_cells;
	struct buf cells; // owned: texts, each behind a byte that says how its row looks
};

void table_init(struct table *table, const struct table_column *columns, size_t n_columns);
struct buf *table_cell(struct table *table, bool faint); // append the next cell's text to it
void table_print(struct table *table, struct buf *out, const struct style *style);
void table_finish(struct table *table);
