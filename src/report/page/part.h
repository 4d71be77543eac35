/* The parts of a run's page, and the small things they are made of. Each part writes nothing at all where it has nothing to say. */
#pragma once

#include "analysis/chart/chart.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct part {
	struct buf *out;
	const struct charts *charts;
	const struct findings *f;
	const struct run *run;
};

void section_head(const struct part *part);      // what was run, the headline figures, what to know of them
void section_ledger(const struct part *part);    // where the energy went
void section_time(const struct part *part);      // charts and lanes
void section_blocks(const struct part *part);    // code blocks, and energy per unit of work
void section_flame(const struct part *part);     // the flame graph
void section_layers(const struct part *part);    // layers and complexity of a model
void section_tune(const struct part *part);      // what `wattle cap tune` found
void section_domains(const struct part *part);   // energy by domain, where each figure comes from
void section_gpus(const struct part *part);      // what each GPU did
void section_metrics(const struct part *part);   // what the program told
void section_processes(const struct part *part); // those with most CPU time
void section_about(const struct part *part);     // machine, command, labels, what the meter cost, what happened

/* ---- pieces ---- */

void part_title(const struct part *part, const char *id, const char *title); // <h2>
// What a program or a machine called something: <bdi>, shortened in its middle where it is very long; what nothing is seen of is told by its characters.
void part_name(struct buf *out, const char *name);
// A cell that sorts by its value; `print` is one of human_*.
void part_cell(struct buf *out, double value, void (*print)(struct buf *, double));
void part_cell_count(struct buf *out, int64_t value); // VALUE_MISSING: n/a
// Energy with its error; where that is larger, what the energy is at most.
void part_cell_energy(struct buf *out, double energy_j, double error_j);
void part_cell_energy_per(struct buf *out, double energy_j, double error_j, const char *unit); // "… per token"
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
// A sentence on the calibration of GPUs, where there are any.
void part_calibration(struct buf *out, const struct findings *f);
// With its errors, smaller; calibration_j: of the GPUs, NaN: none.
void part_figure_energy(struct buf *out, double energy_j, double error_j, double calibration_j);

struct part_notes { // sentences that a reader must know
	struct buf *out;
	bool any;
};
void part_note(void *data, const char *text); // data: struct part_notes; as report_warnings calls it
void part_notes_end(const struct part_notes *notes);

struct part_column {
	const char *title;
	const char *class; // "name", "text", or NULL for figures
	const char *sort;  // "descending": rows stand so; NULL: by other columns
};
// Copies them without the one of this name; NULL: all. Returns how many.
size_t part_columns_but(const struct part_column *all, size_t n, const char *name, struct part_column *ret_columns);
// <table> up to <tbody>; ends with part_table_end.
void part_table_begin(const struct part *part, const char *id, const char *caption, const struct part_column *columns,
	size_t n, bool sortable);
void part_table_end(const struct part *part);

/* Right after a long table of `n` rows: how many of them paper has no room for. `PAPER_HALF`: two such tables stand side by side. */
enum paper_table { PAPER_BLOCKS, PAPER_DOMAINS, PAPER_GPUS, PAPER_LAYERS, PAPER_UNITS, PAPER_HALF, PAPER_TABLES };
void part_paper(const struct part *part, enum paper_table table, size_t n);
