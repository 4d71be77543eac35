#include "report/documents.h"

#include "base/util.h"
#include "report/section/grid.h"
#include "report/report.h"

#include <stdio.h>

struct page {
	struct buf *out;
	const struct style *style;
	const struct tracking_table *table; // NULL: none
};

static void title(const struct page *page, const char *text)
{
	buf_printf(page->out, "\n  %s", page->style->title);
	text_add_printable(page->out, text, strlen(text));
	buf_printf(page->out, "%s\n", page->style->off);
}

static const struct column call_columns[] = {
	{"name", .kind = COLUMN_TEXT},
	{"num_calls", "calls", .print = human_whole},
	{"num_non_empty_calls", "non-empty", .print = human_whole},
	{"num_timepoints", "timepoints", .print = human_whole},
	{"compute_time.total", "total", .print = human_time},
	{"compute_time.mean", "mean", .print = human_time},
	{"compute_time.min", "min", .print = human_time},
	{"compute_time.max", "max", .print = human_time},
};
static const struct grid calls_grid = GRID(NULL, call_columns);

static void number(struct buf *out, double value)
{
	human_number(out, value, 3);
}

// Omits rows of zeros: many programs use no GPU.
static bool is_shown(const struct object_at *row)
{
	const struct value_stats *stats = row->data;
	return !isnan(stats->max) && (stats->max != 0 || stats->min != 0);
}

static const struct column metric_columns[] = {
	{.write = row_write_key, .kind = COLUMN_TEXT},
	{"mean", "mean", .print = number},
	{"min", "min", .print = number},
	{"max", "max", .print = number},
	{"std", "std", .print = number},
};
static const struct grid metrics_grid = GRID(NULL, metric_columns, .is_shown = is_shown);

static void metrics_table(const struct page *page, const struct object_at *object, const char *key)
{
	if (grid_list(&metrics_grid, object, key, page->out, page->style) == 0)
		buf_printf(page->out, "  %sall values are 0%s\n", page->style->faint,
			page->style->off);
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
	text_add_printable(page->out, ram, strlen(ram));
	buf_str(page->out, ", GPU RAM in ");
	text_add_printable(page->out, gpu_ram, strlen(gpu_ram));
	buf_printf(page->out, "; metrics that are always 0 are omitted%s\n", page->style->off);
}

void tracking_blocks_text(const struct tracking_findings *findings, struct buf *out, bool colour)
{
	const struct page page = {out, style_for(colour), findings->table};
	const struct object_at document = {.type = &tracking_type, .data = findings};
	title(&page, "Code blocks");
	grid_list(&calls_grid, &document, "code_block_results", out, page.style);
	if (page.table == NULL)
		return;
	units_line(&page);
	char overall[80];
	snprintf(overall, sizeof(overall), "Overall, %zu timepoints", page.table->n);
	title(&page, overall);
	metrics_table(&page, &document, "overall");
	for (size_t i = 0; i < findings->n_blocks; i++) {
		if (findings->blocks[i].timepoints == 0)
			continue;
		title(&page, findings->blocks[i].name);
		metrics_table(&page,
			&(struct object_at){&tracking_block_type, &findings->blocks[i], &document, i, NULL},
			"resource_usage");
	}
}
