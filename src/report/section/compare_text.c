#include "report/documents.h"

#include "base/util.h"
#include "report/report.h"
#include "report/section/grid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_SHOWN = 10, LINES_OF_BLOCKS = 15, NAME_COLUMNS = 16 };

struct page {
	struct buf *out;
	const struct style *style;
	const struct comparison *comparison;
	size_t n_sessions;
};

/* Changes */

void compare_signed_percent(struct buf *out, double percent, int decimals)
{
	buf_str(out, percent < 0 ? "−" : percent > 0 ? "+" : "");
	buf_fixed(out, fabs(percent), decimals);
	buf_str(out, " %");
}

static int decimals_of(double percent, double error_percent)
{
	double finest = isnan(error_percent) || error_percent == 0 ? fabs(percent) / 100 : error_percent;
	return finest >= 1 ? 0 : finest >= 0.1 ? 1 : 2;
}

void compare_percent(struct buf *out, struct compare_change change)
{
	int decimals = decimals_of(change.percent, change.error_percent);
	compare_signed_percent(out, change.percent, decimals);
	if (isnan(change.error_percent))
		return;
	buf_str(out, " ± ");
	buf_fixed(out, fmax(change.error_percent, 0.01), decimals); // at least 0.01: an error is never 0
}

static void title(const struct page *page, const char *what, const char *name)
{
	buf_printf(page->out, "\n  %s%s", page->style->title, what);
	text_add_printable(page->out, name, strlen(name));
	buf_printf(page->out, "%s\n", page->style->off);
}

/* A value of one session. The object around it is its compare_row; the index is its place among the sorted sessions. */

#define V struct compare_value
static const struct field value_fields[] = {
	FIELD(V, session, NULL, "name of the session"),
	FIELD(V, value, NULL, "value of the session"),
	FIELD(V, error, NULL, "half of its 95 % interval"),
};
#undef V
static const struct object_type value_type = OBJECT_TYPE("value", "A value of one session.", value_fields);

static const struct compare_row *row_of(const struct object_at *at)
{
	return at->outer->data;
}

static void plain_number(struct buf *out, double value)
{
	human_number(out, value, 4);
}

static void row_name(struct buf *out, const struct object_at *at, bool is_page)
{
	buf_str(out, at->index == 0 ? row_of(at)->name : "");
}

// Ratio to the smallest value; empty if that is 0 or negative.
static void ratio(struct buf *out, const struct object_at *at, bool is_page)
{
	double least = row_of(at)->values[0].value, value = row_of(at)->values[at->index].value;
	if (!(least > 0) || isnan(value))
		return;
	buf_str(out, "× ");
	buf_fixed(out, value / least, 3);
}

// Overlapping intervals show no significant difference; without errors there is no verdict.
static void overlap(struct buf *out, const struct object_at *at, bool is_page)
{
	const struct compare_value *least = &row_of(at)->values[0], *value = at->data;
	if (at->index > 0 && value->value - value->error <= least->value + least->error)
		buf_str(out, "no difference seen");
}

// Omits quantities that are 0 or unknown in all sessions; most programs have many.
static bool is_shown(const struct compare_row *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isnan(row->values[i].value) && row->values[i].value != 0)
			return true;
	return false;
}

// Energy has errors. Returns whether a figure is marked.
static bool value_table(const struct page *page, const struct compare_row *rows, size_t n_rows,
	void (*print)(struct buf *, double))
{
	const bool is_energy = print == human_energy;
	const struct column columns[] = {
		{NULL, "", COLUMN_NAME, .write = row_name},
		{"session", .kind = COLUMN_TEXT},
		{"value", is_energy ? "energy" : "", .print = print, .error = is_energy ? "error" : NULL,
			.error_title = is_energy ? "error" : NULL},
		{NULL, "ratio", .write = ratio},
		{NULL, "", COLUMN_TEXT, .write = overlap, .is_optional = true},
	};
	const struct grid grid = GRID(NULL, columns);
	struct object_at *of = calloc_array(n_rows * (page->n_sessions + 1) + 1, sizeof(*of));
	struct rows cells = {.at = of + n_rows};
	for (size_t r = 0; of != NULL && r < n_rows; r++) {
		of[r] = (struct object_at){.data = &rows[r]};
		for (size_t i = 0; (is_energy || is_shown(&rows[r], page->n_sessions)) && i < page->n_sessions; i++)
			cells.at[cells.n++] = (struct object_at){&value_type, &rows[r].values[i], &of[r], i, NULL};
	}
	cells.shown = cells.n;
	if (of == NULL)
		page->out->failed = -ENOMEM;
	else if (cells.n == 0)
		buf_printf(page->out, "  %s0 or unknown throughout%s\n", page->style->faint, page->style->off);
	else
		grid_text(&grid, &cells, page->out, page->style);
	bool is_marked = of != NULL && grid_is_marked(&grid, &cells, ON_TEXT);
	free(of);
	return is_marked;
}

/* Whole runs, and blocks that differ */

struct quantity {
	const char *name;
	const struct compare_row *row;
	void (*print)(struct buf *out, double value);
	double difference; // largest from the first session, absolute
};

static struct compare_figure figure(const struct page *page, const struct compare_row *row, size_t i)
{
	return compare_figure_of(page->comparison, row, page->comparison->sessions[i]);
}

static void value_cell(struct table *table, struct compare_figure figure, void (*print)(struct buf *, double))
{
	struct buf *cell = table_cell(table, false);
	print(cell, figure.value);
	if (isnan(figure.value) || isnan(figure.error))
		return;
	buf_char(cell, ' ');
	if (print == human_energy) {
		human_error_of(cell, figure.value, figure.error);
	} else {
		buf_str(cell, "± ");
		print(cell, figure.error);
		buf_str(cell, unresolved_mark(figure.value, figure.error));
	}
}

// Two cells: the change from the first session, and the verdict.
static void change_cells(struct table *table, struct compare_change change, bool is_first)
{
	static const char *const verdicts[] = {
		[COMPARE_UNKNOWN] = "",
		[COMPARE_UNDECIDED] = "",
		[COMPARE_EQUAL] = "equal",
		[COMPARE_NO_CHANGE] = "no difference",
		[COMPARE_LESS] = "lower",
		[COMPARE_MORE] = "higher",
	};
	struct buf *cell = table_cell(table, false);
	if (!is_first && isfinite(change.percent))
		compare_percent(cell, change);
	buf_str(table_cell(table, false), is_first ? "" : verdicts[change.verdict]);
}

// One line with a column for each of two sessions; of more sessions a line for each.
static void quantity_rows(const struct page *page, struct table *table, const struct quantity *quantity)
{
	struct compare_figure first = figure(page, quantity->row, 0);
	bool is_pair = page->n_sessions == 2;
	for (size_t i = 0; i < page->n_sessions; i++) {
		struct compare_figure value = figure(page, quantity->row, i);
		if (i == 0 || !is_pair)
			buf_str(table_cell(table, false), i == 0 ? quantity->name : "");
		if (!is_pair)
			buf_str(table_cell(table, false), page->comparison->sessions[i]);
		value_cell(table, value, quantity->print);
		if (i > 0 || !is_pair)
			change_cells(table, compare_change(first, value), i == 0);
	}
}

static void quantity_table(const struct page *page, const struct quantity *quantities, size_t n)
{
	struct buf names[2];
	bool is_pair = page->n_sessions == 2;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		buf_init(&names[i], 4096);
		text_fit_middle(&names[i], is_pair ? page->comparison->sessions[i] : "", NAME_COLUMNS);
	}
	struct table_column columns[] = {{""}, {"", .middle = true}, {"", true}, {"change", true}, {""}};
	for (size_t i = 0; is_pair && i < ARRAY_SIZE(names); i++)
		columns[1 + i] = (struct table_column){names[i].data != NULL ? names[i].data : "", true};
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++)
		quantity_rows(page, &table, &quantities[i]);
	table_print(&table, page->out, page->style);
	table_finish(&table);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		buf_finish(&names[i]);
}

static void whole_runs(const struct page *page)
{
	const struct comparison *c = page->comparison;
	const struct quantity quantities[] = {
		{.name = "Energy", .row = &c->energy, .print = human_energy},
		{.name = "Time", .row = &c->duration, .print = human_time},
		{.name = "Mean power", .row = &c->power, .print = human_power},
	};
	buf_char(page->out, '\n');
	quantity_table(page, quantities, ARRAY_SIZE(quantities));
}

static bool is_marked(const struct page *page, const struct compare_row *row)
{
	for (size_t i = 0; i < page->n_sessions; i++)
		if (unresolved_mark(row->values[i].value, row->values[i].error)[0] != '\0')
			return true;
	return false;
}

// The largest difference from the first session that exceeds the errors; 0: none does; NaN: none is known.
static double significant_difference(const struct page *page, const struct compare_row *row)
{
	struct compare_figure first = figure(page, row, 0);
	double largest = (double)NAN;
	for (size_t i = 1; i < page->n_sessions; i++) {
		struct compare_figure other = figure(page, row, i);
		enum compare_verdict verdict = compare_change(first, other).verdict;
		if (verdict >= COMPARE_NO_CHANGE)
			largest = fmax(largest, verdict == COMPARE_NO_CHANGE ? 0 : fabs(other.value - first.value));
	}
	return largest;
}

static int largest_first(const void *a, const void *b)
{
	double x = ((const struct quantity *)a)->difference, y = ((const struct quantity *)b)->difference;
	return (x < y) - (x > y);
}

static void count(struct buf *text, size_t n, const char *before, const char *after)
{
	if (n > 0)
		buf_printf(text, "%zu %scode block%s %s. ", n, before, n == 1 ? "" : "s", after);
}

static void notes(const struct page *page, size_t n_hidden, size_t n_alike, size_t n_unknown, bool any_marked)
{
	struct buf text;
	buf_init(&text, 4096);
	count(&text, n_hidden, "more ", "with a difference");
	count(&text, n_alike, "", "without a significant difference");
	count(&text, n_unknown, "", "without energy to compare");
	buf_str(&text,
		"--all shows everything. ± is half of a 95 % interval of the meters; repeated runs vary more, which "
		"`wattle bench` measures.");
	if (any_marked)
		buf_printf(&text, " %s", unresolved_note);
	buf_str(page->out, "\n  ");
	text_wrap(page->out, page->out->size - 2, 2, text.data != NULL ? text.data : "");
	buf_char(page->out, '\n');
	buf_finish(&text);
}

static void blocks_that_differ(const struct page *page)
{
	const struct comparison *c = page->comparison;
	struct quantity *found = calloc_array(c->n_blocks + 1, sizeof(*found));
	size_t n = 0, n_unknown = 0,
	       shown = page->n_sessions == 2 ? BLOCKS_SHOWN : 1 + LINES_OF_BLOCKS / page->n_sessions;
	for (size_t b = 0; found != NULL && b < c->n_blocks; b++) {
		const struct compare_row *row = &c->block_energy[b];
		found[n] = (struct quantity){row->name, row, human_energy, significant_difference(page, row)};
		n_unknown += isnan(found[n].difference);
		n += found[n].difference > 0;
	}
	if (found == NULL) {
		page->out->failed = -ENOMEM;
		return;
	}
	qsort(found, n, sizeof(*found), largest_first);
	shown = n < shown ? n : shown;
	bool any_marked = is_marked(page, &c->energy);
	for (size_t i = 0; i < shown; i++)
		any_marked |= is_marked(page, found[i].row);
	if (n > 0) {
		title(page, "Code blocks whose energy differs, largest difference first", "");
		quantity_table(page, found, shown);
	}
	notes(page, n - shown, c->n_blocks - n - n_unknown, n_unknown, any_marked);
	free(found);
}

/* All figures */

static void energy(const struct page *page, const struct comparison *c)
{
	struct compare_row *rows = calloc_array(c->n_blocks + 1, sizeof(*rows));
	if (rows == NULL)
		return;
	rows[0] = (struct compare_row){"whole run", c->energy.values};
	for (size_t b = 0; b < c->n_blocks; b++)
		rows[1 + b] = c->block_energy[b];
	title(page, "Energy", "");
	if (value_table(page, rows, 1 + c->n_blocks, human_energy))
		buf_printf(page->out, "  %s\n", unresolved_note);
	free(rows);
}

/* Other tables */

// The metrics of one block, labelled with metric names.
static void block_usage(const struct page *page, const struct comparison *c, size_t block)
{
	struct compare_row *rows = calloc_array(c->n_metrics, sizeof(*rows));
	for (size_t m = 0; rows != NULL && m < c->n_metrics; m++)
		rows[m] = (struct compare_row){c->overall[m].name, c->usage[m * c->n_blocks + block].values};
	if (rows != NULL)
		value_table(page, rows, c->n_metrics, plain_number);
	free(rows);
}

static void all_figures(const struct page *page, const char *statistic)
{
	const struct comparison *c = page->comparison;
	char what[80];
	if (c->has_energy)
		energy(page, c);
	if (c->n_blocks > 0) {
		snprintf(what, sizeof(what), "Time per call, %s", statistic);
		title(page, what, "");
		value_table(page, c->compute_time, c->n_blocks, human_time);
	}
	snprintf(what, sizeof(what), "Overall, %s", statistic);
	title(page, what, "");
	value_table(page, c->overall, c->n_metrics, plain_number);
	snprintf(what, sizeof(what), "While in a block, %s: ", statistic);
	for (size_t b = 0; b < c->n_blocks; b++) {
		title(page, what, c->compute_time[b].name);
		block_usage(page, c, b);
	}
}

void compare_text(const struct comparison *comparison, const char *statistic, bool all, struct buf *out, bool colour)
{
	const struct page page = {out, style_for(colour), comparison, comparison->n_sessions};
	if (comparison->has_energy)
		whole_runs(&page);
	if (all || isnan(comparison->energy.values[0].value)) // unknown values are last: no session has energy
		all_figures(&page, statistic);
	else
		blocks_that_differ(&page);
}
