/* Basic elements of pages. */
#pragma once

#include "analysis/chart/chart.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct document;
struct job_findings;
struct job_charts;
struct spread;
struct style;

struct part {
	struct buf *out;
	const struct style *style; // for a terminal; NULL: HTML page
	const struct document *document;
	const struct findings *f;       // of a job: its total
	const struct run *run;          // of f
	const struct job_findings *job; // NULL: report of one run
	const struct charts *charts;    // pages only
	const struct job_charts *time;  // pages of jobs only
	bool half;                      // printed side by side with another section
	bool is_whole;                  // on a terminal: all rows
	bool is_brief;                  // on a terminal: fewer rows and warnings
	bool is_summary;                // on a terminal: the lines after `wattle run` (ON_SUMMARY)
};

/* ---- elements ---- */

// Writes a name from a program or machine in <bdi>, truncated in the middle if very long. Invisible names are written as code
// points.
void part_name(struct buf *out, const char *name);
// A cell that sorts by its value; `print`: one of human_*.
void part_cell(struct buf *out, double value, void (*print)(struct buf *, double));
// The same with unresolved_mark, if the value is known.
void part_cell_marked(struct buf *out, double value, void (*print)(struct buf *, double), const char *mark);
// Energy with its error, marked if that is as large.
void part_cell_energy(struct buf *out, double energy_j, double error_j);
void part_cell_energy_per(struct buf *out, double energy_j, double error_j, const char *unit); // "… per token"
void part_energy(struct buf *out, double energy_j, double error_j); // without the cell element
void part_tag(struct buf *out, enum provenance provenance); // "measured", "derived", "estimated"
void part_percent(struct buf *out, double percent);         // a small positive value is not printed as 0.0 %
void part_share(struct buf *out, double share);             // 0 to 1, as a small bar
void part_cell_share(struct buf *out, double share, const char *mark); // bar and percentage; NaN: empty

struct part_tile { // a headline figure: title, value, remark
	const char *title;
	struct buf figure, note; // HTML
};
void part_tile_begin(struct part_tile *tile, const char *title);
void part_tile_end(const struct part *part, struct part_tile *tile);
// Plain text in which backticks mark commands.
void part_sentence(struct buf *out, const char *text);
void part_rank(struct buf *out, const struct job_findings *job, size_t rank); // "rank 3"; without a number, its file
// Writes the rank with the largest value if the values differ.
void part_most_of_all(struct buf *out, const struct job_findings *job, const struct spread *spread);
// A small chart: a line per rank on a scale from 0, the mean, and the largest value. NaN: unknown.
void part_strip(struct buf *out, const double *values, size_t n, const struct spread *spread);

struct part_notes { // warnings and notes
	struct buf *out;
	bool any;
};
void part_note(void *data, const char *text); // callback of report_warnings; data: struct part_notes
void part_notes_end(const struct part_notes *notes);

struct part_column {
	const char *title;
	const char *class; // "name", "text"; NULL: numbers
	const char *sort;  // "descending": rows are sorted by it; NULL: by other columns
};
// Opens a table up to <tbody>; part_table_end closes it.
void part_table_begin(const struct part *part, const char *id, const char *caption, const struct part_column *columns,
	size_t n, bool sortable);
void part_table_end(const struct part *part);

/* Call after a table of `n` rows: notes how many rows are omitted in print. `PRINT_HALF`: two such tables are side by
 * side. */
enum print_table {
	PRINT_NONE,
	PRINT_BLOCKS,
	PRINT_DOMAINS,
	PRINT_GPUS,
	PRINT_LAYERS,
	PRINT_UNITS,
	PRINT_HALF,
	PRINT_NODES,
	PRINT_RANKS,
	PRINT_TABLES
};
void print_limit_mark(const struct part *part, enum print_table table, size_t n);
