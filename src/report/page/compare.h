/* Sections of the page that compares runs. The first run is the reference. */
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

void compare_head(const struct compare_page *page);     // title, and the verdicts in words
void compare_commands(const struct compare_page *page); // one row per run: command, start, end
void compare_figures(const struct compare_page *page);  // energy, time, power …
void compare_power(const struct compare_page *page);    // power over time of all runs on one axis
void compare_ledgers(const struct compare_page *page);  // energy by owner
void compare_domains(const struct compare_page *page);  // energy by domain
void compare_blocks(const struct compare_page *page);   // energy and time of the code blocks that match by name
void compare_usage(const struct compare_page *page);    // all metrics, overall and while in a block
void compare_notes(const struct compare_page *page);    // meaning of the intervals

struct compare_figure compare_energy(const struct compare_page *page, size_t run); // energy of the whole run
struct compare_figure compare_time(const struct compare_page *page, size_t run);   // duration

/* ---- comparison table ---- */

struct compare_line {
	const char *title;
	bool is_name; // name from a program: escaped, in <bdi>
	void (*print)(struct buf *, double);
	struct compare_figure *figures; // n_runs values
};

/* Lines of n_runs values, each with a small chart of its change from the first run with intervals. */
struct compare_table {
	const char *id, *caption, *head; // head: title of the first column
	struct compare_line *lines;      // owned, including their figures
	size_t n_lines, capacity;
	bool failed; // out of memory
};
// Appends a line; NULL: no memory. Its values are initially unknown.
struct compare_line *compare_line_add(const struct compare_page *page, struct compare_table *table, const char *title,
	void (*print)(struct buf *, double));
// Removes the last line if all its values are unknown or 0; many such lines would hide the others.
void compare_line_finish(const struct compare_page *page, struct compare_table *table);
void compare_table_write(const struct compare_page *page, struct compare_table *table); // writes and frees the table

void compare_run_name(const struct compare_page *page, size_t run); // name of a run after a swatch of its colour
