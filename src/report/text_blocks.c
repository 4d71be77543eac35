#include "report/text.h"

#include "base/util.h"
#include "report/parts.h"
#include "report/words.h"

#include <stdio.h>

enum { NAME_COLUMNS = 27 };

/* What to show of the blocks, in the order in which a person wants it. */
struct chosen {
	const struct block_finding **blocks; // owned
	size_t n;
};

static struct chosen choose(const struct findings *f, size_t rows_max)
{
	struct chosen chosen = {.blocks = blocks_by_cost(f)};
	if (chosen.blocks != NULL)
		chosen.n = f->n_blocks < rows_max ? f->n_blocks : rows_max;
	return chosen;
}

static void name_cell(struct table *table, const struct block_finding *block)
{
	text_fit_middle(table_cell(table, false), block->name, NAME_COLUMNS);
}

static void time_row(struct table *table, const struct block_finding *block)
{
	name_cell(table, block);
	buf_i64(table_cell(table, false), block->calls);
	human_short_time(table_cell(table, false), block->compute_time_s.total);
	human_short_time(table_cell(table, false), block->compute_time_s.mean);
	human_short_time(table_cell(table, false), block->self_time_s);
	human_short_time(table_cell(table, false), block->calls > 0 ? block->cpu_s : (double)NAN);
}

static void time_table(const struct text *text, const struct chosen *chosen)
{
	static const struct table_column columns[] = {{"", false, true}, {"calls", true}, {"time", true},
		{"per call", true}, {"own", true}, {"CPU", true}};
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < chosen->n; i++)
		time_row(&table, chosen->blocks[i]);
	text_title(text, "Code blocks: time");
	table_print(&table, text->out, text->style);
	table_finish(&table);
}

// An energy that is smaller than its error: all that is known is what it is at most.
static void energy_cell(struct table *table, double energy_j, double error_j)
{
	struct buf *cell = table_cell(table, false);
	bool bound = error_j > 0 && error_j >= fabs(energy_j);
	buf_str(cell, bound ? "< " : "");
	human_energy(cell, bound ? fmax(energy_j, 0) + error_j : energy_j);
}

static void energy_row(const struct text *text, struct table *table, const struct block_finding *block)
{
	const double none = (double)NAN;
	double time_s = block->active_s, all_j = text->findings->ledger.target_j;
	bool known = block->calls > 0, resolved = known && block->resolved;
	name_cell(table, block);
	energy_cell(table, known ? block->total_j : none, block->error_j);
	struct buf *error = table_cell(table, false);
	if (resolved)
		human_error(error, block->error_j);
	energy_cell(table, known ? block->self_j : none, block->self_error_j);
	human_energy(table_cell(table, false), resolved ? block->total_j / (double)block->calls : none);
	human_power(table_cell(table, false), resolved && time_s > 0 ? block->total_j / time_s : none);
	human_percent(table_cell(table, false), resolved && all_j > 0 ? block->total_j / all_j * 100 : none);
}

static bool any_bound(const struct chosen *chosen)
{
	for (size_t i = 0; i < chosen->n; i++)
		if (chosen->blocks[i]->error_j > 0 && !chosen->blocks[i]->resolved)
			return true;
	return false;
}

static void remark(const struct text *text, const char *sentence)
{
	struct buf plain;
	buf_init(&plain, 1 << 14);
	buf_str(&plain, "");
	text_wrap(&plain, 0, 2, sentence);
	if (plain.failed == 0)
		buf_printf(text->out, "%s%s%s\n", text->style->faint, plain.data, text->style->off);
	buf_finish(&plain);
}

static void outside_row(const struct text *text, struct table *table)
{
	const struct findings *f = text->findings;
	const double none = (double)NAN;
	bool resolved = f->outside_error_j < fabs(f->outside_j);
	buf_str(table_cell(table, true), "outside of them");
	energy_cell(table, f->outside_j, f->outside_error_j);
	struct buf *error = table_cell(table, true);
	if (resolved)
		human_error(error, f->outside_error_j);
	for (int i = 0; i < 3; i++)
		table_cell(table, true);
	human_percent(table_cell(table, true), resolved ? f->outside_j / f->ledger.target_j * 100 : none);
}

static void energy_table(const struct text *text, const struct chosen *chosen)
{
	static const struct table_column columns[] = {{"", false, true}, {"energy", true}, {"error", true},
		{"own", true}, {"per call", true}, {"power", true}, {"share", true}};
	if (isnan(text->findings->outside_j))
		return;
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < chosen->n; i++)
		energy_row(text, &table, chosen->blocks[i]);
	outside_row(text, &table);
	text_title(text, "Code blocks: energy");
	table_print(&table, text->out, text->style);
	table_finish(&table);
	if (any_bound(chosen))
		remark(text, "<: the error is larger than the energy, which is not told from what is around it.");
}

/* ---- per unit of work ---- */

static void one_of(struct buf *out, const char *name)
{
	struct buf one;
	buf_init(&one, 1 << 12);
	buf_add(&one, name, words_one_of(name));
	if (one.failed == 0)
		text_fit_middle(out, one.data, NAME_COLUMNS);
	buf_finish(&one);
}

static void unit_row(struct table *table, const struct block_finding *block, const struct block_unit *unit)
{
	bool resolved = unit->error_j_per_unit < unit->j_per_unit;
	name_cell(table, block);
	struct buf *sum = table_cell(table, false);
	human_exact(sum, unit->sum, 1e4);
	buf_char(sum, ' ');
	text_fit_middle(sum, unit->name, NAME_COLUMNS / 2);
	energy_cell(table, unit->j_per_unit, unit->error_j_per_unit);
	struct buf *error = table_cell(table, false);
	if (resolved)
		human_error(error, unit->error_j_per_unit);
	struct buf *name = table_cell(table, false);
	buf_str(name, "per ");
	one_of(name, unit->name);
}

static void units_table(const struct text *text, const struct chosen *chosen)
{
	static const struct table_column columns[] = {{"", false, true}, {"work", true}, {"energy", true},
		{"error", true}, {"", false}};
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < chosen->n; i++)
		for (size_t k = 0; k < chosen->blocks[i]->n_units; k++)
			if (!isnan(chosen->blocks[i]->units[k].j_per_unit))
				unit_row(&table, chosen->blocks[i], &chosen->blocks[i]->units[k]);
	if (table.n_cells > 0) {
		text_title(text, "Energy per unit of work");
		table_print(&table, text->out, text->style);
	}
	table_finish(&table);
}

/* ---- calls that have no end of their own ---- */

static void endings(const struct text *text)
{
	const struct findings *f = text->findings;
	long long cut = 0, unwound = 0;
	char sentence[160];
	for (size_t i = 0; i < f->n_blocks; i++) {
		cut += f->blocks[i].cut;
		unwound += f->blocks[i].unwound;
	}
	if (cut > 0) {
		snprintf(sentence, sizeof(sentence), "%lld call%s ended with %s thread, program or process.", cut,
			cut == 1 ? "" : "s", cut == 1 ? "its" : "their");
		remark(text, sentence);
	}
	if (unwound > 0) {
		snprintf(sentence, sizeof(sentence),
			"%lld call%s left without an end (by longjmp, or forgotten) and ended with the one around.",
			unwound, unwound == 1 ? " was" : "s were");
		remark(text, sentence);
	}
}

void text_blocks(const struct text *text, size_t rows_max)
{
	struct chosen chosen = choose(text->findings, rows_max);
	if (chosen.n > 0) {
		time_table(text, &chosen);
		text_and_more(text, text->findings->n_blocks - chosen.n);
		endings(text);
		energy_table(text, &chosen);
		units_table(text, &chosen);
	}
	free(chosen.blocks);
}

void blocks_text(const struct findings *findings, struct buf *out, bool colour)
{
	struct text text = {.findings = findings, .out = out, .style = style_for(colour)};
	if (findings->n_blocks == 0)
		buf_str(out, "  no code blocks were marked\n");
	text_blocks(&text, findings->n_blocks);
}
