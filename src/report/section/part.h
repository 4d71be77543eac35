/* The small things that pages are made of. */
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
	const struct style *style; // of a terminal; NULL: a page
	const struct document *document;
	const struct findings *f;       // of a job its total
	const struct run *run;          // of f
	const struct job_findings *job; // NULL: of one run
	const struct charts *charts;    // of a page
	const struct job_charts *time;  // of a job's page
	bool half;                      // on paper it stands beside another
};

/* ---- pieces ---- */

// What a program or a machine called something: <bdi>, shortened in its middle where it is very long; what nothing is seen of is told by its characters.
void part_name(struct buf *out, const char *name);
// A cell that sorts by its value; `print` is one of human_*.
void part_cell(struct buf *out, double value, void (*print)(struct buf *, double));
void part_cell_count(struct buf *out, int64_t value); // VALUE_MISSING: n/a
// Energy with its error; where that is larger, what the energy is at most.
void part_cell_energy(struct buf *out, double energy_j, double error_j);
void part_cell_energy_per(struct buf *out, double energy_j, double error_j, const char *unit); // "… per token"
void part_energy(struct buf *out, double energy_j, double error_j); // the same without its cell
void part_tag(struct buf *out, enum provenance provenance); // "measured", "derived", "estimated"
void part_percent(struct buf *out, double percent);         // what is more than nothing does not read 0.0 %
void part_share(struct buf *out, double share);             // 0 to 1, as a small bar
void part_cell_share(struct buf *out, double share);        // that and its percentage; NaN: empty
bool part_has_time(const struct part *part);                // there is an axis to draw on

struct part_tile { // a headline figure: title, figure, remark
	const char *title;
	struct buf figure, remark; // HTML
};
void part_tile_begin(struct part_tile *tile, const char *title);
void part_tile_end(const struct part *part, struct part_tile *tile);
// Plain text with commands in backticks.
void part_sentence(struct buf *out, const char *text);
void part_rank(struct buf *out, const struct job_findings *job, size_t rank); // "rank 3"; of one without a number its file
// The rank that has most of something, where not all have as much.
void part_most_of_all(struct buf *out, const struct job_findings *job, const struct spread *spread);
// A small picture: a line for each rank along a scale from 0, the mean, and the one that has most. NaN: unknown.
void part_strip(struct buf *out, const double *values, size_t n, const struct spread *spread);

struct part_notes { // sentences that a reader must know
	struct buf *out;
	const struct style *style;
	bool any;
};
void part_note(void *data, const char *text); // data: struct part_notes; as report_warnings calls it
void part_notes_end(const struct part_notes *notes);

struct part_column {
	const char *title;
	const char *class; // "name", "text", or NULL for figures
	const char *sort;  // "descending": rows stand so; NULL: by other columns
};
// <table> up to <tbody>; ends with part_table_end.
void part_table_begin(const struct part *part, const char *id, const char *caption, const struct part_column *columns,
	size_t n, bool sortable);
void part_table_end(const struct part *part);

/* Right after a long table of `n` rows: how many of them paper has no room for. `PAPER_HALF`: two such tables stand side by side. */
enum paper_table { PAPER_NONE, PAPER_BLOCKS, PAPER_DOMAINS, PAPER_GPUS, PAPER_LAYERS, PAPER_UNITS, PAPER_HALF, PAPER_NODES, PAPER_RANKS, PAPER_TABLES };
void part_paper(const struct part *part, enum paper_table table, size_t n);
