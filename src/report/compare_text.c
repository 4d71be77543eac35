#include "report/documents.h"

#include "base/util.h"
#include "report/report.h"
#include "report/table.h"

#include <stdio.h>

struct page {
	struct buf *out;
	const struct style *style;
	size_t n_sessions;
};

static void title(const struct page *page, const char *what, const char *name)
{
	buf_printf(page->out, "\n  %s%s", page->style->title, what);
	text_add_harmless(page->out, name, strlen(name));
	buf_printf(page->out, "%s\n", page->style->off);
}

static void plain_number(struct buf *out, double value)
{
	if (isnan(value))
		buf_str(out, "n/a");
	else
		human_number(out, value, 4);
}

// Ratio to the smallest value; empty if that is 0 or negative.
static void ratio_cell(struct table *table, const struct compare_row *row, size_t i)
{
	struct buf *cell = table_cell(table, false);
	if (!(row->values[0].value > 0) || isnan(row->values[i].value))
		return;
	buf_str(cell, "× ");
	buf_fixed(cell, row->values[i].value / row->values[0].value, 3);
}

/* The first column names the quantity once; one row per session follows. */
static void rows_of(struct table *table, const struct compare_row *row, size_t n, void (*print)(struct buf *, double))
{
	for (size_t i = 0; i < n; i++) {
		buf_str(table_cell(table, false), i == 0 ? row->name : "");
		buf_str(table_cell(table, false), row->values[i].session);
		print(table_cell(table, false), row->values[i].value);
		ratio_cell(table, row, i);
	}
}

static const struct table_column value_columns[] = {{"", false}, {"", false}, {"", true}, {"ratio", true}};

// Omits quantities that are 0 or unknown in all sessions; most programs have many.
static bool is_shown(const struct compare_row *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isnan(row->values[i].value) && row->values[i].value != 0)
			return true;
	return false;
}

static void value_table(const struct page *page, const struct compare_row *rows, size_t n_rows,
	void (*print)(struct buf *, double))
{
	struct table table;
	table_init(&table, value_columns, ARRAY_SIZE(value_columns));
	for (size_t i = 0; i < n_rows; i++)
		if (is_shown(&rows[i], page->n_sessions))
			rows_of(&table, &rows[i], page->n_sessions, print);
	if (table.n_cells == 0)
		buf_printf(page->out, "  %s0 or unknown throughout%s\n", page->style->faint, page->style->off);
	table_print(&table, page->out, page->style);
	table_finish(&table);
}

/* Energy */

// Overlapping intervals show no significant difference; without errors there is no verdict.
static const char *verdict(const struct compare_row *row, size_t i)
{
	const struct compare_value *least = &row->values[0], *value = &row->values[i];
	if (i == 0 || isnan(value->value) || isnan(value->error) || isnan(least->error))
		return "";
	return value->value - value->error <= least->value + least->error ? "no difference seen" : "";
}

static void energy_rows(struct table *table, const struct compare_row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_str(table_cell(table, false), i == 0 ? row->name : "");
		buf_str(table_cell(table, false), row->values[i].session);
		human_energy(table_cell(table, false), row->values[i].value);
		struct buf *error = table_cell(table, false);
		if (!isnan(row->values[i].error))
			human_error(error, row->values[i].error);
		ratio_cell(table, row, i);
		buf_str(table_cell(table, false), verdict(row, i));
	}
}

static void energy(const struct page *page, const struct comparison *c)
{
	static const struct table_column columns[] = {{"", false}, {"", false}, {"energy", true}, {"error", true},
		{"ratio", true}, {"", false}};
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	struct compare_row whole = c->energy;
	whole.name = "whole run";
	energy_rows(&table, &whole, c->n_sessions);
	for (size_t b = 0; b < c->n_blocks; b++)
		energy_rows(&table, &c->block_energy[b], c->n_sessions);
	title(page, "Energy", "");
	table_print(&table, page->out, page->style);
	table_finish(&table);
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

void compare_text(const struct comparison *comparison, const char *statistic, struct buf *out, bool colour)
{
	const struct comparison *c = comparison;
	const struct page page = {out, style_for(colour), c->n_sessions};
	char what[80];
	if (c->has_energy)
		energy(&page, c);
	if (c->n_blocks > 0) {
		snprintf(what, sizeof(what), "Time per call, %s", statistic);
		title(&page, what, "");
		value_table(&page, c->compute_time, c->n_blocks, human_time);
	}
	snprintf(what, sizeof(what), "Overall, %s", statistic);
	title(&page, what, "");
	value_table(&page, c->overall, c->n_metrics, plain_number);
	snprintf(what, sizeof(what), "While in a block, %s: ", statistic);
	for (size_t b = 0; b < c->n_blocks; b++) {
		title(&page, what, c->compute_time[b].name);
		block_usage(&page, c, b);
	}
}
