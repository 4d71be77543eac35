#include "report/text.h"

#include "base/util.h"
#include "report/domain_tree.h"
#include "report/words.h"

enum { BAR_COLUMNS = 34 };

// A bar of eighths of a column.
static void bar(struct buf *out, double share)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	long n = share > 0 ? lround(share * BAR_COLUMNS * 8) : 0;
	for (; n >= 8; n -= 8)
		buf_str(out, "█");
	buf_str(out, eighths[n]);
}

static void words_line(const struct text *text, void (*words)(struct buf *out, const struct findings *f))
{
	struct buf plain;
	buf_init(&plain, 1 << 16);
	words(&plain, text->findings);
	if (plain.size > 0 && plain.failed == 0) {
		struct buf wrapped;
		buf_init(&wrapped, 1 << 16);
		buf_str(&wrapped, "");
		text_wrap(&wrapped, 0, 2, plain.data);
		buf_printf(text->out, "%s%s%s\n", text->style->faint, wrapped.data, text->style->off);
		buf_finish(&wrapped);
	}
	buf_finish(&plain);
}

void text_ledger(const struct text *text)
{
	static const struct table_column columns[] = {{"", false}, {"energy", true}, {"share", true}, {"", false}};
	const struct findings *f = text->findings;
	if (!(f->total_j > 0))
		return;
	const struct {
		const char *name;
		double energy_j;
	} rows[] = {
		{text->target != NULL ? text->target : "this program", f->ledger.target_j},
		{"other programs", f->ledger.others_j},
		{"wattle", f->ledger.wattle_j},
		{"idle", f->ledger.idle_j},
		{"unattributed", f->ledger.unattributed_j},
	};
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		double share = rows[i].energy_j / f->total_j;
		buf_str(table_cell(&table, false), rows[i].name);
		human_energy(table_cell(&table, false), rows[i].energy_j);
		human_percent(table_cell(&table, false), share * 100);
		bar(table_cell(&table, false), share);
	}
	text_title(text, "Where the energy went");
	table_print(&table, text->out, text->style);
	table_finish(&table);
	words_line(text, words_attribution);
}

static void source_cell(struct buf *out, const struct domain_finding *d)
{
	if (d->provenance == PROVENANCE_ESTIMATED) {
		buf_str(out, "estimated");
		return;
	}
	buf_str(out, d->device->source);
	if (d->provenance == PROVENANCE_DERIVED)
		buf_str(out, ", derived");
}

static void domain_row(void *data, const struct domain_finding *d, int depth)
{
	struct table *table = data;
	bool faint = !d->in_total;
	struct buf *name = table_cell(table, faint);
	for (int i = 0; i < depth; i++)
		buf_str(name, "  ");
	buf_str(name, d->device->name);
	human_energy(table_cell(table, faint), d->energy_j);
	struct buf *error = table_cell(table, faint);
	if (!isnan(d->error_j))
		human_error(error, d->error_j);
	human_power(table_cell(table, faint), d->mean_w);
	human_power(table_cell(table, faint), d->max_w);
	human_energy(table_cell(table, faint), d->ledger.target_j);
	source_cell(table_cell(table, faint), d);
}

void text_domains(const struct text *text)
{
	static const struct table_column columns[] = {{"", false}, {"energy", true}, {"error", true}, {"mean", true},
		{"max", true}, {"program", true}, {"source", false}};
	const struct findings *f = text->findings;
	if (f->n_domains == 0)
		return;
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	domain_tree(f, domain_row, &table);
	text_title(text, "Energy by domain");
	table_print(&table, text->out, text->style);
	table_finish(&table);
	for (size_t i = 0; i < f->n_domains; i++) {
		if (f->domains[i].in_total)
			continue;
		buf_printf(text->out,
			"  %score, uncore, psys and the like are shown, not added: they overlap the others.%s\n",
			text->style->faint, text->style->off);
		break;
	}
	words_line(text, words_calibration);
}

void text_gpus(const struct text *text)
{
	static const struct table_column columns[] = {{"", false}, {"busy", true}, {"program", true}, {"memory", true},
		{"program", true}, {"hottest", true}, {"throttled", true}, {"cap", true}};
	const struct findings *f = text->findings;
	if (f->n_gpus == 0)
		return;
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < f->n_gpus; i++) {
		const struct gpu_finding *gpu = &f->gpus[i];
		buf_str(table_cell(&table, false), gpu->device->name);
		human_percent(table_cell(&table, false), gpu->mean_utilization_percent);
		human_percent(table_cell(&table, false), gpu->target_mean_utilization_percent);
		human_bytes(table_cell(&table, false), value_to_double(gpu->max_memory_bytes, 1));
		human_bytes(table_cell(&table, false), value_to_double(gpu->target_max_memory_bytes, 1));
		struct buf *heat = table_cell(&table, false);
		if (isnan(gpu->max_temperature_c))
			buf_str(heat, "n/a");
		else
			buf_printf(heat, "%lld °C", llround(gpu->max_temperature_c));
		human_time(table_cell(&table, false), gpu->throttled_s);
		human_power(table_cell(&table, false), gpu->cap_w);
	}
	text_title(text, "GPUs");
	table_print(&table, text->out, text->style);
	table_finish(&table);
}
