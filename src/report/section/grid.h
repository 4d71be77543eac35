/* Tables of objects, for a terminal and for a page, from their field tables: which fields, in which order, under which title.
 *
 *	static const struct column columns[] = {
 *		{"domain", .kind = COLUMN_NAME},
 *		{"energy_j", .error = "error_j", .error_title = "error"},
 *	};
 *	const struct grid gpus_grid = GRID("gpus-table", columns);
 *
 * A figure is printed by the unit of its field. */
#pragma once

#include "base/arena.h"
#include "base/fields.h"
#include "report/table.h"

// Where a column stands; none of a pair: in both.
enum { ON_TEXT = 1, ON_PAGE = 2, OF_RUN = 4, OF_JOB = 8 };

static inline bool is_wanted(unsigned int only, unsigned int surface, unsigned int document)
{
	const unsigned int surfaces = ON_TEXT | ON_PAGE, documents = OF_RUN | OF_JOB;
	return ((only & surfaces) == 0 || (only & surface) != 0) && ((only & documents) == 0 || document == 0 || (only & document) != 0);
}

enum column_kind { COLUMN_FIGURE, COLUMN_NAME, COLUMN_WORDS, COLUMN_LONG, COLUMN_BAR };

struct column {
	const char *key;       // of a field of the row's object, or of one inside it: "compute_time.mean"; NULL: `write` does it all
	const char *title;     // NULL: the field's
	enum column_kind kind; // a name stands in the row's heading
	unsigned int only;
	const char *error;       // key of half of the 95 % interval; where that is larger, the figure is what it is at most
	const char *error_title; // on a terminal the error has a column of its own
	void (*print)(struct buf *out, double value); // NULL: by unit
	// All that the cell has; rows sort by `key` where there is one. Plain text on a terminal, HTML on a page.
	void (*write)(struct buf *out, const struct object_at *row, bool is_page);
	bool is_optional; // left out where no row has anything of it
	bool is_middle;   // a text that is too wide is cut in its middle
	size_t width;     // columns of a terminal, at most; 0: as wide as the table allows
	bool has_bar;     // on a page: a share with a small bar
	bool is_sorted;   // rows stand in this order, descending: the first of such columns that is there
};

struct grid {
	const char *id; // of the page's table; NULL: there may be several
	const struct column *columns;
	size_t n_columns;
	const struct object_type *more; // fields that only this table has
	// Attributes of a page's row, with a blank before them.
	void (*attributes)(struct buf *out, const struct object_at *row);
	bool (*is_faint)(const struct object_at *row);
	bool (*is_shown)(const struct object_at *row); // of grid_text_list; NULL: all
};
#define GRID(id_, columns_, ...)                                                                                       \
	{                                                                                                              \
		.id = (id_), .columns = (columns_), .n_columns = sizeof(columns_) / sizeof((columns_)[0]), ##__VA_ARGS__ \
	}

struct rows {
	struct object_at *at; // in an arena
	size_t n, shown;      // shown of them
	const struct object_at *foot; // a last row beside them; NULL: none
	bool is_fixed;   // a page's reader does not sort them
	unsigned int of; // OF_RUN or OF_JOB: leaves out columns of the other; 0: all columns
};

// Rows of a list or a map of objects by its key, as "energy.domains", or of a document that is a list (NULL); -ENOMEM. What is not there has none.
int rows_of(const struct object_at *document, const char *list, struct arena *arena, struct rows *ret_rows);
// The largest first, by one key and then by another (NULL: none); unknown ones last.
void rows_sort(struct rows *rows, const char *first, const char *second);

// Of a field by its key; NaN: unknown, or no number. `more` may be NULL.
double row_number(const struct object_at *row, const struct object_type *more, const char *key);
// NULL: unknown, or no text.
const char *row_text(const struct object_at *row, const struct object_type *more, const char *key, struct buf *scratch);
// Column `write` of maps: the key of the row.
void row_write_key(struct buf *out, const struct object_at *row, bool is_page);
// Prints a field by its unit; false: it is unknown, and nothing is printed.
bool row_print(struct buf *out, const struct object_at *row, const char *key, bool is_page);

void grid_text(const struct grid *grid, const struct rows *rows, struct buf *out, const struct style *style);
// The rows that are shown of a list, as rows_of finds it, and how many they are.
size_t grid_text_list(const struct grid *grid, const struct object_at *document, const char *list, struct buf *out,
	const struct style *style);
void grid_page(const struct grid *grid, const struct rows *rows, struct buf *out);
