/* Tables for terminals and pages, built from field tables: a grid lists the fields, their order and titles.
 *
 *	static const struct column columns[] = {
 *		{"domain", .kind = COLUMN_NAME},
 *		{"energy_j", .error = "error_j", .error_title = "error"},
 *	};
 *	const struct grid gpus_grid = GRID("gpus-table", columns);
 *
 * A value is printed by the unit of its field. */
#pragma once

#include "base/arena.h"
#include "base/fields.h"
#include "report/table.h"

// Restricts a column to outputs or reports; without a flag of a pair, it appears in both.
// ON_SUMMARY: the summary after `wattle run`.
enum { ON_TEXT = 1, ON_PAGE = 2, OF_RUN = 4, OF_JOB = 8, ON_SUMMARY = 16 };

static inline bool is_wanted(unsigned int only, unsigned int surface, unsigned int document)
{
	const unsigned int surfaces = ON_TEXT | ON_PAGE | ON_SUMMARY, documents = OF_RUN | OF_JOB;
	return ((only & surfaces) == 0 || surface == 0 || (only & surface) != 0) &&
		((only & documents) == 0 || document == 0 || (only & document) != 0);
}

enum column_kind { COLUMN_FIGURE, COLUMN_NAME, COLUMN_TEXT, COLUMN_LONG, COLUMN_BAR };

struct column {
	const char *key;       // field of the row's object or of a member: "compute_time.mean"; NULL: `write` only
	const char *title;     // NULL: title of the field
	enum column_kind kind; // COLUMN_NAME: the row header
	unsigned int only;
	const char *error;       // key of half of the 95 % interval; if that is as large as the value, the figure is marked
	const char *of;          // key of the energy that has the error, of a figure derived from it: only the mark is printed
	const char *error_title; // title of a separate error column on a terminal
	void (*print)(struct buf *out, double value); // NULL: by unit
	// Writes the whole cell, plain text on a terminal, HTML on a page; rows still sort by `key`, if set.
	void (*write)(struct buf *out, const struct object_at *row, bool is_page);
	bool is_optional; // omitted if no row has a value, or all have 0
	bool keeps_zero;  // is_optional: 0 counts as a value
	bool is_middle;   // a long text is truncated in the middle
	size_t width;     // maximum columns on a terminal; 0: unlimited within the table
	bool has_bar;     // on a page: a share with a small bar
	bool is_sorted;   // the rows are sorted by the first present column with this flag, descending
};

struct grid {
	const char *id; // of the page's table; NULL: none, for repeated tables
	const struct column *columns;
	size_t n_columns;
	const char *heading; // grid_list, on a terminal: above the table; NULL: none
	const struct object_type *more; // additional fields for this table only
	// Writes attributes of a page's row, each after a blank.
	void (*attributes)(struct buf *out, const struct object_at *row);
	bool (*is_faint)(const struct object_at *row);
	bool (*is_shown)(const struct object_at *row); // row filter of grid_list; NULL: all
	bool is_fixed;                                 // not sortable on the page
	bool is_plain; // on a terminal: without titles and indentation, of any width
};
#define GRID(id_, columns_, ...)                                                                                       \
	{                                                                                                              \
		.id = (id_), .columns = (columns_), .n_columns = sizeof(columns_) / sizeof((columns_)[0]), ##__VA_ARGS__ \
	}

struct rows {
	struct object_at *at; // allocated in an arena
	size_t n, shown;      // shown: number of rows to print
	const struct object_at *foot; // an additional last row; NULL: none
	unsigned int of; // OF_RUN or OF_JOB: omits columns of the other; 0: all columns
};

// Rows of a list or map of objects by its key, such as "energy.domains", or of a document that is a list (NULL). A missing
// list has no rows. -ENOMEM.
int rows_of(const struct object_at *document, const char *list, struct arena *arena, struct rows *ret_rows);
// Sorts descending by one key, then by another (NULL: none); unknown values last.
void rows_sort(struct rows *rows, const char *first, const char *second);

// Value of a field by its key; NaN: unknown or not a number. `more` may be NULL.
double row_number(const struct object_at *row, const struct object_type *more, const char *key);
// NULL: unknown or not a text.
const char *row_text(const struct object_at *row, const struct object_type *more, const char *key, struct buf *scratch);
// For column `write` of maps: writes the key of the row.
void row_write_key(struct buf *out, const struct object_at *row, bool is_page);
// Prints a field by its unit; false: unknown, nothing printed.
bool row_print(struct buf *out, const struct object_at *row, const char *key, bool is_page);

void grid_text(const struct grid *grid, const struct rows *rows, struct buf *out, const struct style *style);
// Prints the shown rows of a list (as in rows_of) and returns their number. style NULL: page.
size_t grid_list(const struct grid *grid, const struct object_at *document, const char *list, struct buf *out,
	const struct style *style);
void grid_page(const struct grid *grid, const struct rows *rows, struct buf *out);
// Whether a printed row has an unresolved figure. on: ON_TEXT or ON_PAGE.
bool grid_is_marked(const struct grid *grid, const struct rows *rows, unsigned int on);
