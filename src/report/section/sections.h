/* Parts of the reports of a run and of a job, for a terminal and for a page. Each writes nothing at all where it has nothing to say. */
#pragma once

#include "analysis/chart/job.h"
#include "report/fields/document.h"
#include "report/section/part.h"
#include "report/section/grid.h"
#include "report/words.h"

/* ---- parts: of both, then of a job, then of pages ---- */
void section_ledger(const struct part *part);    // where the energy went
void section_domains(const struct part *part);   // energy by domain, where each figure comes from
void section_gpus(const struct part *part);      // what each GPU did
void section_blocks(const struct part *part);    // code blocks, and energy per unit of work
void section_all_blocks(const struct part *part); // the same without an end to its rows
void section_metrics(const struct part *part);   // what the program told
void section_processes(const struct part *part); // those with most CPU time
void section_events(const struct part *part);    // what happened meanwhile
void section_kinds(const struct part *part);     // energy by kind of domain
void section_nodes(const struct part *part);     // energy by node: where it went, by part of the machine
void section_ranks(const struct part *part);
void section_balance(const struct part *part); // how evenly the ranks worked, what waiting and the slowest one cost
void section_time(const struct part *part);    // charts and lanes
void section_flame(const struct part *part);   // the flame graph
void section_layers(const struct part *part);  // layers and complexity of a model
void section_tune(const struct part *part);    // what `wattle cap tune` found
void section_about(const struct part *part);   // machine, command, labels, what the meter cost
void section_heat(const struct part *part);    // power of each node over time, as a picture of rows

void part_heading(const struct part *part);  // what was run
void part_headline(const struct part *part); // time, energy, CPU, memory, GPUs, wattle itself
void part_warnings(const struct part *part);

/* ---- what they are made of ---- */
enum { TEXT_ROWS_MAX = 12 }; // of a terminal's table whose length the program decides
static inline bool is_page(const struct part *part)
{
	return part->style == NULL;
}
void section_begin(const struct part *part, const char *id, const char *title);
void section_end(const struct part *part);
void part_remark(const struct part *part, const char *sentence); // small, under what it is about
// The same with values, at most 1000 bytes.
void part_remarkf(const struct part *part, const char *format, ...) __attribute__((format(printf, 2, 3)));
// What calls with a buffer write, as such a sentence; nothing: nothing.
void part_words(const struct part *part, void (*words)(struct buf *out, const struct findings *f));
// Rows of a list of the document; none where there is no memory.
struct rows part_rows(const struct part *part, const char *list);

struct limits {
	size_t text, page; // rows at most
	enum paper_table paper;
};
void part_grid(const struct part *part, const struct grid *grid, struct rows *rows, struct limits limits);

void page_charts(struct buf *out, const struct charts *charts); // the block of data for the script

// Share of a whole as pieces of one bar; a piece that is not larger than 0 is left out.
struct bar_piece {
	const char *css; // of its colour
	double from, share;
	bool is_hatched;
};
void part_bar(struct buf *out, const char *class, const char *title, const struct bar_piece *pieces, size_t n);

struct owner { // of energy: a row of the ledger
	const char *name, *meaning;
	const char *css;
	size_t offset; // in struct ledger
};
enum { OWNERS = 5 };
extern const struct owner owners[OWNERS];
double owner_j(const struct ledger *ledger, size_t owner);
const char *owner_name(size_t owner, bool is_of_job);
// The ledger as a bar, of which `whole_j` is all.
void ledger_bar(struct buf *out, const char *class, const struct ledger *ledger, double whole_j, bool is_of_job);
void ledger_keys(const struct part *part); // what its colours stand for
