/* Code blocks: what each cost. */
#include "report/page/part.h"

#include "base/util.h"
#include "report/html.h"
#include "report/picture/picture.h"
#include "report/report.h"
#include "report/words.h"

#include <stdlib.h>

enum { ROWS_MAX = 2000, UNIT_ROWS_MAX = 500 }; // what a person may still scroll through; the rest is counted

struct rows {
	const struct part *part;
	const struct block_finding **blocks; // owned
	size_t n;
	bool has_energy, has_cpu;
};

static double per_call(const struct block_finding *block, double value)
{
	return block->calls > 0 ? value / (double)block->calls : (double)NAN;
}

static const struct block_unit *first_unit(const struct block_finding *block)
{
	for (size_t i = 0; i < block->n_units; i++)
		if (!isnan(block->units[i].j_per_unit))
			return &block->units[i];
	return NULL;
}

static void unit_cell(struct buf *out, const struct block_finding *block)
{
	const struct block_unit *unit = first_unit(block);
	if (unit == NULL) {
		buf_str(out, "<td data-value=\"\"></td>");
		return;
	}
	struct buf one;
	buf_init(&one, 1 << 12);
	buf_add(&one, unit->name, words_one_of(unit->name));
	part_cell_energy_per(out, unit->j_per_unit, unit->error_j_per_unit, one.data);
	buf_finish(&one);
}

static void energy_cells(const struct rows *rows, const struct block_finding *block)
{
	struct buf *out = rows->part->out;
	const double none = (double)NAN, all_j = rows->part->f->ledger.target_j;
	bool known = block->calls > 0, resolved = known && block->resolved;
	double share = resolved && all_j > 0 ? block->total_j / all_j : none;
	part_cell_energy(out, known ? block->total_j : none, block->error_j);
	part_cell_share(out, share);
	part_cell_energy(out, known ? block->self_j : none, block->self_error_j);
	part_cell(out, resolved ? per_call(block, block->total_j) : none, human_energy);
	part_cell(out, resolved && block->active_s > 0 ? block->total_j / block->active_s : none, human_power);
}

static void row(const struct rows *rows, const struct block_finding *block, bool has_units)
{
	struct buf *out = rows->part->out;
	size_t index = (size_t)(block - rows->part->f->blocks);
	buf_printf(out, "<tr data-block=\"%zu\"><th scope=\"row\" class=\"name\"><span class=\"swatch c-%s\"></span>",
		index, palette[colour_of_block(rows->part->charts, (uint32_t)index)].css);
	part_name(out, block->name);
	buf_str(out, "</th>");
	if (rows->has_energy)
		energy_cells(rows, block);
	if (has_units)
		unit_cell(out, block);
	part_cell_count(out, block->calls);
	part_cell(out, block->compute_time_s.total, human_short_time);
	part_cell(out, block->compute_time_s.mean, human_short_time);
	part_cell(out, block->self_time_s, human_short_time);
	if (rows->has_cpu)
		part_cell(out, block->calls > 0 ? block->cpu_s : (double)NAN, human_short_time);
	buf_str(out, "</tr>\n");
}

static void outside_row(const struct rows *rows, bool has_units)
{
	const struct findings *f = rows->part->f;
	struct buf *out = rows->part->out;
	buf_str(out, "<tfoot><tr class=\"beside\"><th scope=\"row\" class=\"name\">outside of them</th>");
	bool resolved = !(f->outside_error_j >= fabs(f->outside_j)) || f->outside_j == 0;
	part_cell_energy(out, f->outside_j, f->outside_error_j);
	part_cell(out, resolved ? f->outside_j / f->ledger.target_j * 100 : (double)NAN, part_percent);
	for (int i = 0; i < 7 + has_units + rows->has_cpu; i++)
		buf_str(out, "<td></td>");
	buf_str(out, "</tr></tfoot>\n");
}

// Calls that have no end of their own.
static void endings(const struct rows *rows)
{
	long long cut = 0, unwound = 0;
	for (size_t i = 0; i < rows->part->f->n_blocks; i++) {
		cut += rows->part->f->blocks[i].cut;
		unwound += rows->part->f->blocks[i].unwound;
	}
	struct buf *out = rows->part->out;
	if (cut > 0)
		buf_printf(out, "<p class=\"faint small\">%lld call%s ended with %s thread, program or process.</p>\n",
			cut, cut == 1 ? "" : "s", cut == 1 ? "its" : "their");
	if (unwound > 0)
		buf_printf(out,
			"<p class=\"faint small\">%lld call%s left without an end and ended with the one around.</p>\n",
			unwound, unwound == 1 ? " was" : "s were");
}

static bool any_units(const struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		if (first_unit(rows->blocks[i]) != NULL)
			return true;
	return false;
}

static bool any_bound(const struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->blocks[i]->error_j > 0 && !rows->blocks[i]->resolved)
			return true;
	return false;
}

static void table(const struct rows *rows)
{
	struct part_column columns[12];
	size_t n = 0;
	bool has_units = any_units(rows);
	const char *sorted = rows->has_energy ? NULL : "descending";
	columns[n++] = (struct part_column){"block", "name", NULL};
	if (rows->has_energy) { // what most come for: it is seen without scrolling on a small screen as well
		columns[n++] = (struct part_column){"energy", NULL, "descending"};
		columns[n++] = (struct part_column){"share", NULL, NULL};
		columns[n++] = (struct part_column){"own energy", NULL, NULL};
		columns[n++] = (struct part_column){"J per call", NULL, NULL};
		columns[n++] = (struct part_column){"power", NULL, NULL};
	}
	if (has_units)
		columns[n++] = (struct part_column){"J per unit", NULL, NULL};
	columns[n++] = (struct part_column){"calls", NULL, NULL};
	columns[n++] = (struct part_column){"time", NULL, sorted};
	columns[n++] = (struct part_column){"per call", NULL, NULL};
	columns[n++] = (struct part_column){"own", NULL, NULL};
	if (rows->has_cpu)
		columns[n++] = (struct part_column){"CPU", NULL, NULL};
	part_table_begin(rows->part, "blocks-table", NULL, columns, n, true);
	for (size_t i = 0; i < rows->n; i++)
		row(rows, rows->blocks[i], has_units);
	if (rows->has_energy)
		outside_row(rows, has_units);
	part_table_end(rows->part);
	part_paper(rows->part, PAPER_BLOCKS, rows->n);
}

static bool any_several_units(const struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		size_t known = 0;
		for (size_t k = 0; k < rows->blocks[i]->n_units; k++)
			known += !isnan(rows->blocks[i]->units[k].j_per_unit);
		if (known > 1)
			return true;
	}
	return false;
}

// Of all units that a block told of; the table above has the first only.
static void units(const struct rows *rows)
{
	static const struct part_column columns[] = {{"block", "name"}, {"work"}, {"unit", "text"}, {"energy of one"}};
	size_t shown = 0;
	if (!any_several_units(rows))
		return;
	buf_str(rows->part->out, "<h3 id=\"units\">Energy per unit of work</h3>\n");
	part_table_begin(rows->part, "units-table", NULL, columns, ARRAY_SIZE(columns), true);
	for (size_t i = 0; i < rows->n; i++)
		for (size_t k = 0; k < rows->blocks[i]->n_units && shown < UNIT_ROWS_MAX; k++) {
			const struct block_unit *unit = &rows->blocks[i]->units[k];
			struct buf *out = rows->part->out;
			if (isnan(unit->j_per_unit))
				continue;
			shown++;
			buf_str(out, "<tr><th scope=\"row\" class=\"name\">");
			part_name(out, rows->blocks[i]->name);
			buf_str(out, "</th><td data-value=\"");
			buf_double(out, unit->sum);
			buf_str(out, "\">");
			human_exact(out, unit->sum, 1e4);
			buf_str(out, "</td><td class=\"text\">");
			part_name(out, unit->name);
			buf_str(out, "</td>");
			part_cell_energy(out, unit->j_per_unit, unit->error_j_per_unit);
			buf_str(out, "</tr>\n");
		}
	part_table_end(rows->part);
	part_paper(rows->part, PAPER_UNITS, shown);
}

void section_blocks(const struct part *part)
{
	struct rows rows = {.part = part, .blocks = blocks_by_cost(part->f), .n = part->f->n_blocks};
	if (rows.blocks == NULL)
		return;
	if (rows.n > ROWS_MAX)
		rows.n = ROWS_MAX;
	rows.has_energy = !isnan(part->f->outside_j);
	for (size_t i = 0; i < rows.n; i++)
		rows.has_cpu |= !isnan(rows.blocks[i]->cpu_s);
	buf_str(part->out, "<section>\n");
	part_title(part, "blocks", "Code blocks");
	table(&rows);
	if (rows.n < part->f->n_blocks)
		buf_printf(part->out, "<p class=\"faint small\">… and %zu more: `wattle blocks` tells of all.</p>\n",
			part->f->n_blocks - rows.n);
	if (rows.has_energy)
		buf_str(part->out,
			"<p class=\"faint small\">A block's energy is what this program took while it ran, with the blocks inside of it; "
			"its own energy is without them. Blocks inside of each other, or at the same time in several threads, each count "
			"what they have in common: shares can add up to more than 100 %, own energy does not.</p>\n");
	if (rows.has_energy && any_bound(&rows))
		buf_str(part->out,
			"<p class=\"faint small\">&lt;: the error is larger than the energy, which is not told from what is "
			"around it.</p>\n");
	endings(&rows);
	units(&rows);
	buf_str(part->out, "</section>\n");
	free(rows.blocks);
}
