/* Sections of the reports of runs and jobs, for terminals and pages. A section without data writes nothing. */
#pragma once

#include "analysis/chart/job.h"
#include "report/fields/document.h"
#include "report/phrases.h"
#include "report/section/grid.h"
#include "report/section/html_section.h"

/* ---- sections of both reports, then of jobs, then of pages ---- */
void section_ledger(const struct part *part);    // energy by owner
void section_domains(const struct part *part);   // energy by domain, with its source
void section_gpus(const struct part *part);      // use of each GPU
void section_blocks(const struct part *part);    // code blocks; on a page with energy per unit of work
void section_all_blocks(const struct part *part); // code blocks without a row limit, and energy per unit of work
// The code blocks with most energy, at most that many, without a heading; returns whether a figure is marked as unresolved.
bool section_largest_blocks(const struct part *part, size_t rows_max);
void section_units(const struct part *part); // energy per unit of work, on a terminal
void section_metrics(const struct part *part);   // custom metrics
void section_processes(const struct part *part); // processes with most CPU time
void section_events(const struct part *part);    // events during the run
void section_kinds(const struct part *part);     // energy by kind of domain
void section_nodes(const struct part *part);     // energy by node and by kind of domain
void section_ranks(const struct part *part);
void section_balance(const struct part *part); // load imbalance of the ranks, cost of waiting and of the slowest rank
void section_time(const struct part *part);    // charts and lanes
void section_flame(const struct part *part);   // flame graph
void section_layers(const struct part *part);  // layers and complexity of a model
void section_tune(const struct part *part);    // results of `wattle cap tune`
void section_about(const struct part *part);   // machine, command, labels, measurement overhead
void section_heat(const struct part *part);    // power of each node over time, as a heat map

void part_heading(const struct part *part);  // command that was run
void part_headline(const struct part *part); // time, energy, CPU, memory, GPUs, measurement overhead
bool headline_is_marked(const struct part *part); // an energy in it is unresolved
void part_warnings(const struct part *part);
size_t warning_lines(const struct part *part); // lines of all warnings on a terminal
void warnings_within(const struct part *part, size_t lines); // on a terminal; the last line counts those that do not fit

/* ---- a figure: label, value, errors, remark ---- */
enum { VALUE_COLUMN = 11, REMARK_COLUMN = 34, LINE_CEILING = 1 << 14 };
struct figure_line {
	const struct part *part;
	const char *label;
	struct buf value, error, note;
};
void line_begin(struct figure_line *line, const struct part *part, const char *label);
// Returns the remark's buffer, with a comma appended if it has content.
struct buf *line_also(struct figure_line *line);
void line_end(struct figure_line *line); // writes and frees it
void line_count(struct buf *out, int64_t n, const char *one, const char *plural); // "3 samples"

/* ---- sections of text reports: sections.def ---- */
enum section_id {
#define SECTION(id, ...) SECTION_##id,
#include "report/section/sections.def"
	SECTIONS
};
const char *title_of_section(enum section_id id);

/* ---- helpers ---- */
// Row limits of terminal tables whose length depends on the program; BRIEF: without --all.
enum { TEXT_ROWS_MAX = 12, BRIEF_ROWS_MAX = 8, BRIEF_WARNINGS_MAX = 5 };
static inline bool is_page(const struct part *part)
{
	return part->style == NULL;
}
void section_begin(const struct part *part, const char *id, const char *title);
void section_end(const struct part *part);
void html_section_note(const struct part *part, const char *sentence); // small text below its subject
// The same with a format; at most 1000 bytes.
void html_section_notef(const struct part *part, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Writes the output of `words` as a remark; nothing if it is empty.
void html_section_text(const struct part *part, void (*words)(struct buf *out, const struct findings *f));
// Rows of a list of the document; none without memory.
struct rows part_rows(const struct part *part, const char *list);

struct limits {
	size_t text, page; // maximum number of rows
	enum print_table print_limit;
};
void part_mark_note(const struct part *part, const struct grid *grid, const struct rows *rows); // if a figure has the mark
void part_grid(const struct part *part, const struct grid *grid, struct rows *rows, struct limits limits);

void page_charts(struct buf *out, const struct charts *charts); // JSON data block for the script

// Shares of a whole as pieces of one bar; pieces with a share of 0 or less are omitted.
struct bar_piece {
	const char *css; // class of the colour
	double from, share;
	bool is_hatched;
};
void part_bar(struct buf *out, const char *class, const char *title, const struct bar_piece *pieces, size_t n);

struct owner { // owner of energy: a row of the ledger
	const char *name, *meaning;
	const char *css;
	size_t offset; // in struct ledger
};
enum { OWNERS = 5 };
extern const struct owner owners[OWNERS];
double owner_j(const struct ledger *ledger, size_t owner);
const char *owner_name(size_t owner, bool is_of_job);
// The ledger as a bar; `whole_j` is the full width.
void ledger_bar(struct buf *out, const char *class, const struct ledger *ledger, double whole_j, bool is_of_job);
void ledger_keys(const struct part *part); // legend of the bar's colours
