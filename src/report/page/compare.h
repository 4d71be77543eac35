/* The parts of the page that has runs side by side. The first run given is the one that the others are held against. */
#pragma once

#include "report/page/page.h"

#include <stdbool.h>
#include <stddef.h>

struct compare_page {
	struct buf *out;
	const struct comparison *comparison;
	const struct page_run *runs;
	size_t n_runs;
	const char *statistic;
};

void compare_head(const struct compare_page *page);     // what is compared, and what differs, in words
void compare_commands(const struct compare_page *page); // a row a run: its command, start, end
void compare_figures(const struct compare_page *page);  // energy, time, power …
void compare_power(const struct compare_page *page);    // power over time of each on one axis
void compare_ledgers(const struct compare_page *page);  // where the energy went
void compare_domains(const struct compare_page *page);  // energy by domain
void compare_blocks(const struct compare_page *page);   // energy and time of the code blocks that match
void compare_usage(const struct compare_page *page);    // all metrics, overall and while in a block
void compare_notes(const struct compare_page *page);    // what these intervals are, and are not

/* ---- figures and what differs ---- */

struct compare_figure {
	double value, error; // error: half of a 95 % interval; NaN: none is known
};

enum compare_verdict {
	COMPARE_UNKNOWN,   // one of them is
	COMPARE_UNTOLD,    // they differ by so much, but nothing is known of their errors
	COMPARE_EQUAL,     // to the last digit, and nothing is known of their errors
	COMPARE_NO_CHANGE, // the intervals overlap
	COMPARE_LESS,
	COMPARE_MORE
};

struct compare_change { // of a figure against that of the first run
	double percent, error_percent;
	enum compare_verdict verdict;
};
struct compare_change compare_change(struct compare_figure first, struct compare_figure other);

struct compare_figure compare_figure_of(const struct compare_page *page, const struct compare_row *row, size_t run);
struct compare_figure compare_energy(const struct compare_page *page, size_t run); // of the whole run
struct compare_figure compare_time(const struct compare_page *page, size_t run);   // duration

/* ---- the one table that all of them are ---- */

struct compare_line {
	const char *title;
	bool is_name; // of a program: escaped, in <bdi>
	void (*print)(struct buf *, double);
	struct compare_figure *figures; // n_runs
};

/* Lines of figures, n_runs columns, and how far each is from that of the first run as a small picture with intervals. */
struct compare_table {
	const char *id, *caption, *head; // head: of the first column
	struct compare_line *lines;      // owned, as their figures
	size_t n_lines, capacity;
	bool failed; // no memory
};
// A new line at the end of a table; NULL: no memory. Its figures are unknown at first.
struct compare_line *compare_line_add(const struct compare_page *page, struct compare_table *table, const char *title,
	void (*print)(struct buf *, double));
// Drops the last line again if nothing at all is known of it, or all is 0: it would hide the others.
void compare_line_settle(const struct compare_page *page, struct compare_table *table);
void compare_table_write(const struct compare_page *page, struct compare_table *table); // and releases it

void compare_run_name(const struct compare_page *page, size_t run); // its name behind a swatch of its colour
