/* Code blocks over all ranks: what each cost, and how differently. */
#include "report/page/job.h"

#include "base/util.h"
#include "report/html.h"
#include "report/palette.h"
#include "report/picture/picture.h"
#include "report/report.h"

#include <errno.h>

enum { ROWS_MAX = 1000 };

struct blocks {
	const struct job_page *page;
	const struct job_block **sorted; // n of them
	size_t n;
	bool has_energy, has_absent; // there are blocks that not all ranks have called
};

static int by_cost(const void *a, const void *b)
{
	const struct job_block *x = *(const struct job_block *const *)a, *y = *(const struct job_block *const *)b;
	double cost_x = isnan(x->total_j) ? -1 : x->total_j, cost_y = isnan(y->total_j) ? -1 : y->total_j;
	if (cost_x != cost_y)
		return cost_x > cost_y ? -1 : 1;
	if (x->compute_time_s.total != y->compute_time_s.total)
		return x->compute_time_s.total > y->compute_time_s.total ? -1 : 1;
	return (x > y) - (x < y);
}

static void strip(const struct blocks *blocks, const struct job_block *block)
{
	const struct job_findings *job = blocks->page->job;
	const struct spread *s = &block->time_s;
	job_strip(blocks->page->part.out,
		&(struct job_strip){block->rank_time_s, job->n_ranks, s->mean, s->max,
			s->max > s->min ? s->max_at : -1});
}

static void name_cell(const struct blocks *blocks, const struct job_block *block)
{
	struct buf *out = blocks->page->part.out;
	uint32_t index = findings_block(&blocks->page->job->total, block->name);
	buf_printf(out, "<th scope=\"row\" class=\"name\"><span class=\"swatch c-%s\"></span>",
		palette[colour_of_block(&blocks->page->time->charts, index)].css);
	part_name(out, block->name);
	if (block->waits)
		buf_str(out, " <span class=\"tag tag-waits\">waits</span>");
	buf_str(out, "</th>");
}

static void energy_cells(const struct blocks *blocks, const struct job_block *block)
{
	struct buf *out = blocks->page->part.out;
	double share = block->total_j / blocks->page->job->total.ledger.target_j;
	part_cell_energy(out, block->total_j, block->error_j);
	part_cell_share(out, share);
}

static void row(const struct blocks *blocks, const struct job_block *block)
{
	struct buf *out = blocks->page->part.out;
	const struct spread *s = &block->time_s;
	buf_printf(out, "<tr data-block=\"%u\">", (unsigned)findings_block(&blocks->page->job->total, block->name));
	name_cell(blocks, block);
	if (blocks->has_energy)
		energy_cells(blocks, block);
	part_cell_count(out, block->calls);
	part_cell(out, block->compute_time_s.mean, human_short_time);
	if (blocks->has_absent)
		part_cell_count(out, s->count);
	part_cell(out, s->min, human_short_time);
	part_cell(out, s->mean, human_short_time);
	part_cell(out, s->max, human_short_time);
	part_cell(out, s->imbalance_percent, part_percent);
	buf_str(out, "<td class=\"text\">");
	if (s->max_at >= 0 && s->max > s->min)
		job_rank_name(out, blocks->page, (size_t)s->max_at);
	buf_str(out, "</td><td class=\"text\">");
	strip(blocks, block);
	buf_str(out, "</td></tr>\n");
}

static void table(const struct blocks *blocks)
{
	const struct part *part = &blocks->page->part;
	struct part_column columns[13] = {{"block", "name"}};
	size_t n = 1, shown = blocks->n < ROWS_MAX ? blocks->n : ROWS_MAX;
	if (blocks->has_energy) {
		columns[n++] = (struct part_column){"energy", NULL, "descending"};
		columns[n++] = (struct part_column){.title = "share"};
	}
	columns[n++] = (struct part_column){.title = "calls"};
	columns[n++] = (struct part_column){.title = "per call"};
	if (blocks->has_absent)
		columns[n++] = (struct part_column){.title = "in ranks"};
	static const struct part_column times[] = {{"least"}, {"mean"}, {"most"}, {"imbalance"},
		{"most of all", "text"}, {"each rank, from 0", "text"}};
	memcpy(columns + n, times, sizeof(times));
	n += ARRAY_SIZE(times);
	part_table_begin(part, "blocks-table", NULL, columns, n, blocks->n > 1);
	for (size_t i = 0; i < shown; i++)
		row(blocks, blocks->sorted[i]);
	part_table_end(part);
	job_paper(blocks->page, shown, 14);
	if (blocks->n > shown)
		buf_printf(part->out,
			"<p class=\"faint small\">… and %zu more blocks, which the JSON report has.</p>\n",
			blocks->n - shown);
}

static void section(const struct blocks *blocks)
{
	struct buf *out = blocks->page->part.out;
	buf_str(out, "<section>\n");
	part_title(&blocks->page->part, "blocks", "Code blocks over the ranks");
	table(blocks);
	buf_str(out,
		"<p class=\"faint small\">Least, mean and most are of a rank's time in a block, all its calls together. A block's "
		"energy is what its ranks took meanwhile, inner blocks included.</p>\n");
	if (blocks->page->job->block_energy_left_out)
		buf_str(out,
			"<p class=\"faint small\">There are too many spans to read them all: blocks of ranks that did not read the sensors "
			"have no energy. <code>--full</code> reads them.</p>\n");
	buf_str(out, "</section>\n");
}

void job_blocks(const struct job_page *page)
{
	const struct job_findings *job = page->job;
	struct blocks blocks = {.page = page, .n = job->n_blocks};
	if (job->n_blocks == 0)
		return;
	blocks.sorted = calloc_array(job->n_blocks, sizeof(*blocks.sorted));
	if (blocks.sorted != NULL) {
		for (size_t i = 0; i < job->n_blocks; i++) {
			blocks.sorted[i] = &job->blocks[i];
			blocks.has_energy |= !isnan(job->blocks[i].total_j);
			blocks.has_absent |= job->blocks[i].time_s.count < job->duration_s.count;
		}
		qsort(blocks.sorted, blocks.n, sizeof(*blocks.sorted), by_cost);
		section(&blocks);
	} else {
		page->part.out->failed = -ENOMEM;
	}
	free(blocks.sorted);
}
