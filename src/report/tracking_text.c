#include "report/documents.h"

#include "base/util.h"
#include "report/report.h"
#include "report/table.h"

#include <stdio.h>

struct page {
	struct buf *out;
	const struct style *style;
	const struct tracking_table *table; // NULL: none
};

static void title(const struct page *page, const char *text)
{
	buf_printf(page->out, "\n  %s", page->style->title);
	text_add_harmless(page->out, text, strlen(text));
	buf_printf(page->out, "%s\n", page->style->off);
}

static void count(struct table *table, int64_t n)
{
	struct buf *cell = table_cell(table, false);
	if (value_ok(n))
		buf_i64(cell, n);
	else
		buf_str(cell, "n/a");
}

static void calls_table(const struct page *page, const struct tracking_findings *findings)
{
	static const struct table_column columns[] = {{"", false}, {"calls", true}, {"non-empty", true},
		{"timepoints", true}, {"total", true}, {"mean", true}, {"min", true}, {"max", true}};
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < findings->n_blocks; i++) {
		const struct tracking_block *block = &findings->blocks[i];
		const struct value_stats *time_s = &block->compute_time_s;
		buf_str(table_cell(&table, false), block->name);
		count(&table, block->calls);
		count(&table, block->non_empty_calls);
		count(&table, block->timepoints);
		human_time(table_cell(&table, false), time_s->total);
		human_time(table_cell(&table, false), time_s->mean);
		human_time(table_cell(&table, false), time_s->min);
		human_time(table_cell(&table, false), time_s->max);
	}
	table_print(&table, page->out, page->style);
	table_finish(&table);
}

static void number(struct table *table, double value)
{
	struct buf *cell = table_cell(table, false);
	if (isnan(value))
		buf_str(cell, "n/a");
	else
		human_number(cell, value, 3);
}

// Many programs use no GPU: rows of zeros would hide the others.
static bool is_shown(const struct value_stats *stats)
{
	return !isnan(stats->max) && (stats->max != 0 || stats->min != 0);
}

static void metrics_table(const struct page *page, const struct value_stats *stats)
{
	static const struct table_column columns[] = {{"", false}, {"mean", true}, {"min", true}, {"max", true},
		{"std", true}};
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t c = 0; c < TRACKING_METRICS; c++) {
		if (!is_shown(&stats[c]))
			continue;
		buf_str(table_cell(&table, false), tracking_columns[c].name);
		number(&table, stats[c].mean);
		number(&table, stats[c].min);
		number(&table, stats[c].max);
		number(&table, stats[c].std);
	}
	if (table.n_cells == 0)
		buf_printf(page->out, "  %sno timepoint tells of anything but 0%s\n", page->style->faint,
			page->style->off);
	table_print(&table, page->out, page->style);
	table_finish(&table);
}

static const char *unit(const struct tracking_table *table, const char *name)
{
	for (size_t i = 0; i < table->n_statics; i++)
		if (strcmp(table->statics[i].name, name) == 0 && table->statics[i].text != NULL)
			return table->statics[i].text;
	return "unknown units";
}

static void units_line(const struct page *page)
{
	buf_printf(page->out, "\n  %sRAM in ", page->style->faint);
	const char *ram = unit(page->table, "ram_unit"), *gpu_ram = unit(page->table, "gpu_ram_unit");
	text_add_harmless(page->out, ram, strlen(ram));
	buf_str(page->out, ", GPU RAM in ");
	text_add_harmless(page->out, gpu_ram, strlen(gpu_ram));
	buf_printf(page->out, "; what is 0 throughout is left out%s\n", page->style->off);
}

void tracking_blocks_text(const struct tracking_findings *findings, struct buf *out, bool colour)
{
	const struct page page = {out, style_for(colour), findings->table};
	title(&page, "Code blocks");
	calls_table(&page, findings);
	if (page.table == NULL)
		return;
	units_line(&page);
	char overall[80];
	snprintf(overall, sizeof(overall), "Overall, %zu timepoints", page.table->n);
	title(&page, overall);
	metrics_table(&page, findings->overall);
	for (size_t i = 0; i < findings->n_blocks; i++) {
		if (findings->blocks[i].timepoints == 0)
			continue;
		title(&page, findings->blocks[i].name);
		metrics_table(&page, findings->blocks[i].metrics);
	}
}
