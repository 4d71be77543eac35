/* A job as text for a terminal of 80 columns: the first things, where the energy went, nodes, ranks, how even they were, blocks. */
#include "report/job_report.h"

#include "analysis/facts.h"
#include "base/util.h"
#include "report/job_text.h"
#include "report/job_words.h"
#include "report/parts.h"
#include "report/text.h"
#include "report/warnings.h"
#include "report/words.h"

#include <stdio.h>

enum { LABEL_COLUMN = 2, VALUE_COLUMN = 11, REMARK_COLUMN = 34, LINE_CEILING = 1 << 14 };

/* ---- the first things ---- */

static void line(const struct job_text *t, const char *label, const char *value, const char *remark)
{
	const struct style *style = t->text.style;
	struct buf plain;
	buf_init(&plain, LINE_CEILING);
	buf_pad_to(&plain, 0, LABEL_COLUMN);
	buf_str(&plain, label);
	buf_pad_to(&plain, 0, VALUE_COLUMN);
	buf_str(&plain, value);
	size_t remark_at = plain.size;
	if (remark[0] != '\0') {
		buf_str(&plain, "  ");
		text_wrap(&plain, 0, REMARK_COLUMN, remark);
	}
	if (plain.failed == 0) {
		buf_printf(t->text.out, "%s%.*s%s", style->title, VALUE_COLUMN, plain.data, style->off);
		buf_add(t->text.out, plain.data + VALUE_COLUMN, remark_at - VALUE_COLUMN);
		buf_printf(t->text.out, "%s%s%s\n", style->faint, plain.data + remark_at, style->off);
	}
	buf_finish(&plain);
}

static void headline(const struct job_text *t)
{
	struct buf plain;
	buf_init(&plain, LINE_CEILING);
	job_words_title(&plain, t->job);
	buf_str(t->text.out, t->text.style->title);
	buf_str(t->text.out, "  ");
	if (plain.failed == 0)
		text_fit(t->text.out, plain.data, TEXT_WIDTH - 4, false);
	buf_printf(t->text.out, "%s\n", t->text.style->off);
	buf_clear(&plain);
	job_words_place(&plain, t->job);
	if (plain.failed == 0 && plain.size > 0) {
		buf_str(t->text.out, t->text.style->faint);
		buf_str(t->text.out, "  ");
		text_fit(t->text.out, plain.data, TEXT_WIDTH - 4, false);
		buf_printf(t->text.out, "%s\n", t->text.style->off);
	}
	buf_char(t->text.out, '\n');
	buf_finish(&plain);
}

typedef void (*words)(const struct job_findings *job, struct buf *value, struct buf *remark);

static void time_words(const struct job_findings *job, struct buf *value, struct buf *remark)
{
	human_time(value, job->total.duration_s);
	job_words_ranks(remark, job);
	job_words_pauses(remark, job);
	job_words_clocks(remark, job);
	if (job->runs->every_ns > 0) {
		buf_str(remark, ", one sample read every ");
		human_time(remark, (double)job->runs->every_ns / 1e9);
	}
}

static void energy_words(const struct job_findings *job, struct buf *value, struct buf *remark)
{
	const struct findings *f = &job->total;
	human_energy(value, f->total_j);
	if (isnan(f->total_j)) {
		buf_str(remark, f->n_domains == 0 ? "no sensor could be read" : "no sensor gave a reading");
		return;
	}
	buf_char(value, ' ');
	words_energy_error(value, f->error_j, f->calibration_error_j);
	words_sources(remark, f);
	if (!isnan(f->carbon_g)) {
		buf_str(remark, ", ");
		human_grams(remark, f->carbon_g);
		buf_str(remark, " CO2e");
	}
}

static void target_words(const struct job_findings *job, struct buf *value, struct buf *remark)
{
	const struct findings *f = &job->total;
	if (!(f->total_j > 0))
		return;
	human_energy(value, f->ledger.target_j);
	buf_char(value, ' ');
	words_part_error(value, f->target_error_j, f->target_calibration_error_j);
	buf_str(remark, "by this job's ranks: ");
	human_percent(remark, f->ledger.target_j / f->total_j * 100);
}

static void cpu_words(const struct job_findings *job, struct buf *value, struct buf *remark)
{
	const struct findings *f = &job->total;
	human_time(value, f->target_cpu_s);
	double cores = f->target_cpu_s / f->duration_s;
	if (isfinite(cores) && value_ok(f->usage.system_core_count)) {
		human_number(remark, cores, 3);
		buf_printf(remark, " of %lld cores busy", (long long)f->usage.system_core_count);
	}
}

static void waiting_words(const struct job_findings *job, struct buf *value, struct buf *remark)
{
	const struct job_sums sums = job_sums(job);
	if (isnan(sums.waiting_s))
		return;
	human_time(value, sums.waiting_s);
	buf_str(remark, "of all ranks' time in ");
	job_words_waiting_blocks(remark, job);
	buf_str(remark, ": ");
	human_percent(remark, sums.waiting_s / sums.duration_s * 100);
	if (!isnan(job->waiting_j)) {
		buf_str(remark, ", ");
		human_energy(remark, job->waiting_j);
	}
}

static void self_words(const struct job_findings *job, struct buf *value, struct buf *remark)
{
	const struct findings *f = &job->total;
	human_time(value, f->self_cpu_s);
	buf_printf(remark, "of CPU for %zu recording%s", job->runs->n, job->runs->n == 1 ? "" : "s");
	if (!isnan(f->self_energy_j)) {
		buf_str(remark, ", ");
		human_energy(remark, f->self_energy_j);
	}
}

static void first_things(const struct job_text *t)
{
	static const struct {
		const char *label;
		words write;
	} lines[] = {{"Time", time_words}, {"Energy", energy_words}, {"of it", target_words}, {"CPU", cpu_words},
		{"Waiting", waiting_words}, {"wattle", self_words}};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct buf value, remark;
		buf_init(&value, LINE_CEILING);
		buf_init(&remark, LINE_CEILING);
		buf_str(&value, "");
		buf_str(&remark, "");
		lines[i].write(t->job, &value, &remark);
		if (value.failed == 0 && remark.failed == 0 && value.size > 0)
			line(t, lines[i].label, value.data, remark.data);
		buf_finish(&value);
		buf_finish(&remark);
	}
}

/* ---- balance ---- */

static void at_cell(struct buf *out, const struct job_findings *job, int64_t index)
{
	if (index >= 0 && value_ok(job->ranks[index].rank))
		buf_printf(out, "%lld", (long long)job->ranks[index].rank);
}

static void spread_row(struct table *table, const struct job_findings *job, const char *name, const struct spread *s,
	bool is_work, void (*human)(struct buf *out, double value))
{
	buf_str(table_cell(table, false), name);
	human(table_cell(table, false), s->min);
	human(table_cell(table, false), s->mean);
	human(table_cell(table, false), s->max);
	at_cell(table_cell(table, false), job, s->max_at);
	human(table_cell(table, false), s->std);
	struct buf *imbalance = table_cell(table, false);
	if (is_work) // of what is not work there is no waste in being uneven
		human_percent(imbalance, s->imbalance_percent);
}

static void paragraph(const struct job_text *t, const char *sentence)
{
	struct buf plain;
	buf_init(&plain, LINE_CEILING);
	buf_str(&plain, "");
	text_wrap(&plain, 0, 2, sentence);
	if (plain.failed == 0)
		buf_printf(t->text.out, "%s\n", plain.data);
	buf_finish(&plain);
}

// Where ranks that ended early leave none to compare the other with.
static void nothing_to_compare(const struct job_text *t)
{
	const struct job_findings *job = t->job;
	if (job->n_ended_early == 0)
		return;
	struct buf sentence;
	buf_init(&sentence, LINE_CEILING);
	buf_printf(&sentence, "%zu rank%s that ended early %s not compared: there is nothing to compare the rest with.",
		job->n_ended_early, job->n_ended_early == 1 ? "" : "s", job->n_ended_early == 1 ? "is" : "are");
	text_title(&t->text, "How even the ranks were");
	if (sentence.failed == 0)
		paragraph(t, sentence.data);
	buf_finish(&sentence);
}

static void balance(const struct job_text *t)
{
	static const struct table_column columns[] = {{"", false}, {"least", true}, {"mean", true}, {"most", true},
		{"rank", true}, {"deviation", true}, {"imbalance", true}};
	const struct job_findings *job = t->job;
	const struct {
		const char *name;
		const struct spread *spread;
		bool is_work;
		void (*human)(struct buf *out, double value);
	} rows[] = {{"time", &job->duration_s, true, human_short_time},
		{"working", &job->work_s, true, human_short_time},
		{"waiting", &job->waiting_s, false, human_short_time},
		{"ended earlier", &job->end_wait_s, false, human_short_time},
		{"CPU", &job->cpu_s, true, human_short_time}, {"energy", &job->energy_j, true, human_energy}};
	if (job->duration_s.count < 2) {
		nothing_to_compare(t);
		return;
	}
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].spread->count > 0)
			spread_row(&table, job, rows[i].name, rows[i].spread, rows[i].is_work, rows[i].human);
	struct buf title;
	buf_init(&title, LINE_CEILING);
	buf_str(&title, "How even the ranks were");
	if (job->n_steps > 1)
		buf_printf(&title, " (step %.40s)", job->compared_step != NULL ? job->compared_step : "without a name");
	if (title.failed == 0)
		text_title(&t->text, title.data);
	table_print(&table, t->text.out, t->text.style);
	table_finish(&table);
	buf_clear(&title);
	job_words_slowest(&title, job);
	if (title.failed == 0 && title.size > 0) {
		buf_char(t->text.out, '\n');
		paragraph(t, title.data);
	}
	buf_finish(&title);
}

/* ---- blocks ---- */

struct block_order {
	const struct job_block *block;
	double cost;
};

static int by_cost(const void *a, const void *b)
{
	const struct block_order *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	return strcmp(x->block->name, y->block->name);
}

static void block_row(struct table *table, const struct job_findings *job, const struct job_block *block)
{
	text_fit_middle(table_cell(table, false), block->name, 24);
	buf_i64(table_cell(table, false), block->calls);
	human_short_time(table_cell(table, false), block->time_s.mean);
	human_short_time(table_cell(table, false), block->time_s.max);
	at_cell(table_cell(table, false), job, block->time_s.max_at);
	human_percent(table_cell(table, false), block->time_s.imbalance_percent);
	bool bound = block->error_j > 0 && block->error_j >= fabs(block->total_j);
	struct buf *energy = table_cell(table, false);
	buf_str(energy, bound ? "< " : "");
	human_energy(energy, bound ? fmax(block->total_j, 0) + block->error_j : block->total_j);
	struct buf *error = table_cell(table, false);
	if (!bound && !isnan(block->error_j))
		human_error(error, block->error_j);
}

static void blocks(const struct job_text *t)
{
	static const struct table_column columns[] = {{"", false, true}, {"calls", true}, {"a rank", true},
		{"most", true}, {"rank", true}, {"imbalance", true}, {"energy", true}, {"error", true}};
	const struct job_findings *job = t->job;
	struct block_order *order = calloc_array(job->n_blocks, sizeof(*order));
	if (job->n_blocks == 0 || order == NULL) {
		free(order);
		return;
	}
	bool by_energy = job->total.total_j > 0 && !job->block_energy_left_out;
	for (size_t i = 0; i < job->n_blocks; i++) {
		const struct job_block *block = &job->blocks[i];
		double cost = by_energy ? block->total_j : block->time_s.total;
		order[i] = (struct block_order){block, isnan(cost) ? -1 : cost};
	}
	qsort(order, job->n_blocks, sizeof(*order), by_cost);
	struct table table;
	size_t shown = job->n_blocks < TEXT_ROWS_MAX ? job->n_blocks : TEXT_ROWS_MAX;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < shown; i++)
		block_row(&table, job, order[i].block);
	text_title(&t->text, "Code blocks over all ranks");
	table_print(&table, t->text.out, t->text.style);
	text_and_more(&t->text, job->n_blocks - shown);
	table_finish(&table);
	free(order);
	size_t n_early = 0;
	for (size_t i = 0; i < job->n_ranks; i++)
		n_early += job->ranks[i].ended_early;
	if (n_early > 0)
		paragraph(t, "What a rank took, and the imbalance, are of ranks that did not end early.");
}

static void warnings(const struct job_text *t)
{
	struct warning_writer writer = {.text = &t->text};
	for (size_t i = 0; i < t->job->n_warnings; i++)
		text_warning(&writer, t->job->warnings[i]);
	report_warnings_of_sums(&t->job->total, text_warning, &writer);
}

void job_report_text(const struct job_findings *job, struct buf *out, bool colour)
{
	struct job_text t = {.job = job,
		.text = {.findings = &job->total, .out = out, .style = style_for(colour), .target = "this job"}};
	headline(&t);
	first_things(&t);
	text_ledger(&t.text);
	job_text_nodes(&t);
	job_text_domains(&t);
	job_text_ranks(&t);
	balance(&t);
	blocks(&t);
	text_metrics(&t.text);
	warnings(&t);
}
