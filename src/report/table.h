/* Text output for terminals with 80 columns: styles, and tables with automatic column widths. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { TEXT_WIDTH = 80, TABLE_COLUMNS_MAX = 12 };

struct style { // escape sequences; all "" without colour
	const char *title, *faint, *good, *warning, *bad, *off;
};
const struct style *style_for(bool colour);

/* Names come from programs and machines, and terminals interpret control characters. Here and in the next two functions,
 * "?" replaces those, and a blank replaces a line break. */
void text_add_printable(struct buf *out, const char *text, size_t size);
// Writes at most that many columns of a text; "…" marks truncation. keep_end: truncate at the begin, for paths.
void text_fit(struct buf *out, const char *text, size_t columns, bool keep_end);
// Wraps words at TEXT_WIDTH; further lines begin at column `indent`. Words wider than
// a line are truncated in the middle. Writes no final newline.
void text_wrap(struct buf *out, size_t line_start, size_t indent, const char *text);

// The same with "…" in the middle, for long names with distinctive ends.
void text_fit_middle(struct buf *out, const char *text, size_t columns);

struct table_column {
	const char *title;
	bool right;  // right-aligned, for numbers
	bool middle; // truncated in the middle, else at the begin; the column shrinks like the first one
};

/* Cells are appended row by row. If the table is too wide, the first column is truncated; if several columns may be, the
 * widest is. */
struct table {
	const struct table_column *columns;
	size_t n_columns;
	size_t n_cells;
	bool is_plain;    // without titles and indentation, of any width
	struct buf cells; // owned: cell texts, each after one byte with the style of its row
};

void table_init(struct table *table, const struct table_column *columns, size_t n_columns);
struct buf *table_cell(struct table *table, bool faint); // the caller appends the cell's text
void table_print(struct table *table, struct buf *out, const struct style *style);
void table_finish(struct table *table);
