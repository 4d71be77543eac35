/* The last row of a terminal, which what the command writes leaves alone: that scrolls in the rows above, as under apt.
 * Where the terminal can't do that (TERM=dumb, fewer than four rows, none known) the text stands where the cursor is. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct last_row {
	int fd;
	int kept;     // the row that is kept free, counted from 1; 0: none is
	size_t shown; // columns of the text that stands there
};

// Columns that a text may have: the last one is left free, where some terminals begin a new line.
size_t last_row_columns(const struct last_row *row);
// Left out where the terminal takes nothing: nobody is waited for.
void last_row_draw(struct last_row *row, const char *text, size_t size);
void last_row_finish(struct last_row *row); // gives the row back, empty
