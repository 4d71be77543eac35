/* Code blocks and metrics of the comparison, matched by name. */
#include "report/page/compare.h"

#include "base/util.h"
#include "report/report.h"
#include "report/section/html_section.h"

#include <stdio.h>

static void plain_number(struct buf *out, double value)
{
	human_number(out, value, 4);
}

static void add_row(const struct compare_page *page, struct compare_table *table, const char *name,
	const struct compare_row *row, void (*print)(struct buf *, double))
{
	struct compare_line *line = compare_line_add(page, table, name, print);
	if (line == NULL)
		return;
	line->is_name = true;
	for (size_t i = 0; i < page->n_runs; i++)
		line->figures[i] = compare_figure_of(page->comparison, row, page->runs[i].name);
}

static double first_value(const struct compare_line *line)
{
	return isnan(line->figures[0].value) ? -1 : line->figures[0].value;
}

static int largest_first(const void *a, const void *b)
{
	double x = first_value(a), y = first_value(b);
	return (x < y) - (x > y);
}

static void block_rows(const struct compare_page *page, struct compare_table *table, const struct compare_row *rows,
	void (*print)(struct buf *, double))
{
	for (size_t b = 0; b < page->comparison->n_blocks; b++)
		add_row(page, table, rows[b].name, &rows[b], print);
	if (table->n_lines > 0)
		qsort(table->lines, table->n_lines, sizeof(*table->lines), largest_first);
	compare_table_write(page, table);
}

void compare_blocks(const struct compare_page *page)
{
	const struct comparison *c = page->comparison;
	if (c->n_blocks == 0)
		return;
	char head[64];
	snprintf(head, sizeof(head), "Time per call, %s", page->statistic);
	buf_str(page->out, "<h2 id=\"blocks\">Code blocks</h2>\n");
	if (c->has_energy)
		block_rows(page, &(struct compare_table){.id = "block-energy", .head = "Energy of all calls"},
			c->block_energy, human_energy);
	block_rows(page, &(struct compare_table){.id = "block-time", .head = head}, c->compute_time, human_time);
}

/* ---- metrics ---- */

// Omits metrics that are 0 or unknown in all runs; most programs have many.
static void add_metric(const struct compare_page *page, struct compare_table *table, const char *name,
	const struct compare_row *row)
{
	add_row(page, table, name, row, plain_number);
	compare_line_finish(page, table);
}

static void usage_of_block(const struct compare_page *page, size_t block)
{
	const struct comparison *c = page->comparison;
	char id[40];
	snprintf(id, sizeof(id), "usage-%zu", block);
	struct compare_table table = {.id = id, .head = "While in this block"};
	for (size_t m = 0; m < c->n_metrics; m++)
		add_metric(page, &table, c->overall[m].name, &c->usage[m * c->n_blocks + block]);
	if (table.n_lines == 0 && !table.failed) {
		compare_table_write(page, &table);
		return;
	}
	buf_str(page->out, "<details><summary>While in ");
	part_name(page->out, c->compute_time[block].name);
	buf_str(page->out, "</summary>\n");
	compare_table_write(page, &table);
	buf_str(page->out, "</details>\n");
}

enum { USAGE_BLOCKS_MAX = 100 }; // limits the number of tables, which depends on the program

void compare_usage(const struct compare_page *page)
{
	const struct comparison *c = page->comparison;
	if (c->n_metrics == 0)
		return;
	struct compare_table table = {.id = "usage", .head = "Whole run"};
	for (size_t m = 0; m < c->n_metrics; m++)
		add_metric(page, &table, c->overall[m].name, &c->overall[m]);
	// Omitted in print; the figures of whole runs suffice there.
	buf_printf(page->out, "<div class=\"no-print\">\n<h2>Use of the machine, %s</h2>\n", page->statistic);
	compare_table_write(page, &table);
	for (size_t b = 0; b < c->n_blocks && b < USAGE_BLOCKS_MAX; b++)
		usage_of_block(page, b);
	if (c->n_blocks > USAGE_BLOCKS_MAX)
		buf_printf(page->out,
			"<p class=\"faint\">And %zu more blocks: <code>wattle compare --format json</code> has them all.</p>\n",
			c->n_blocks - USAGE_BLOCKS_MAX);
	buf_str(page->out, "</div>\n");
}
