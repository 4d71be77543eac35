/* Ranks of a job, and their load imbalance. */
#include "report/section/sections.h"

#include "base/util.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_ROWS_MAX = 2000, NODE_COLUMNS = 20, STEP_COLUMNS = 8 };

/* ---- ranks ---- */

static const struct job_rank *rank_of(const struct object_at *row)
{
	return row->data;
}

static const struct job_findings *job_of(const struct object_at *row)
{
	return document_of(row)->job;
}

static void step(struct buf *out, const struct object_at *row, bool is_page)
{
	const char *name = rank_of(row)->step;
	if (job_of(row)->n_steps > 1 && name != NULL)
		text_fit_middle(out, name, STEP_COLUMNS);
}

static void rank_name(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct job_rank *rank = rank_of(row);
	if (is_page) {
		part_rank(out, job_of(row), row->index);
		if (rank->step == NULL || job_of(row)->n_steps < 2)
			return;
		buf_str(out, " <span class=\"faint small\">step ");
		part_name(out, rank->step);
		buf_str(out, "</span>");
	} else if (value_ok(rank->rank)) {
		buf_i64(out, rank->rank);
	} else {
		buf_str(out, rank->nested ? "around" : "-");
	}
}

// Draws the rank's time within the job's time.
static void when(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct job_rank *rank = rank_of(row);
	double all_s = document_of(row)->charts->axis.length_s,
	       waiting_s = isnan(rank->waiting_s) ? 0 : rank->waiting_s;
	double work_s = rank->duration_s - waiting_s;
	const struct bar_piece pieces[] = {
		{"target", rank->start_s / all_s, work_s / all_s, false},
		{"others", (rank->start_s + work_s) / all_s, waiting_s / all_s, false},
		{"unattributed", rank->end_s / all_s, rank->end_wait_s / all_s, false},
	};
	part_bar(out, "rank-bar", "time working, waiting and after its end", pieces,
		all_s > 0 ? ARRAY_SIZE(pieces) : 0);
}

// Writes the exit status; on a page, failures are coloured.
static void ending(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct job_rank *rank = rank_of(row);
	bool failed = value_ok(rank->exit_code) && rank->exit_code != 0;
	size_t start = out->size;
	buf_str(out, is_page && (!rank->complete || failed) ? "<span class=\"warn\">" : is_page ? "<span>" : "");
	size_t begin = out->size;
	if (!rank->complete)
		buf_str(out, "cut off");
	else if (failed)
		buf_printf(out, "exit %lld", (long long)rank->exit_code);
	if (rank->runs > 1)
		buf_printf(out, "%s%lld runs", out->size > begin ? ", " : "", (long long)rank->runs);
	if (rank->cut_off > 0)
		buf_printf(out, ", %lld cut off", (long long)rank->cut_off);
	if (is_page && rank->nested)
		buf_printf(out, "%scontains other recorders: not added", out->size > begin ? ", " : "");
	if (is_page && out->size > begin)
		buf_str(out, "</span>");
	else if (is_page)
		out->data[out->size = start] = '\0';
}

static bool is_nested(const struct object_at *row)
{
	return rank_of(row)->nested;
}

static const struct column rank_columns[] = {
	{NULL, "step", COLUMN_TEXT, ON_TEXT, .write = step, .is_optional = true},
	{"rank", NULL, COLUMN_NAME, .write = rank_name},
	{"node", NULL, COLUMN_TEXT, .width = NODE_COLUMNS, .is_middle = true},
	{"duration_s"},
	{"work_s", .only = ON_TEXT},
	{"waiting_s", .only = ON_TEXT},
	{"work_s", .only = ON_PAGE, .is_optional = true},
	{"waiting_s", .only = ON_PAGE, .is_optional = true},
	{"cpu_s"},
	{"energy_j", .error = "error_j", .error_title = "error"},
	{NULL, "when", COLUMN_BAR, ON_PAGE, .write = when},
	{NULL, "", COLUMN_TEXT, .write = ending},
};
static const struct grid rank_grid = GRID("ranks-table", rank_columns, .is_faint = is_nested);

static void keys(const struct part *part)
{
	static const char *const all[][2] = {{"target", "working"}, {"others", "waiting in blocks (drawn at the end)"},
		{"unattributed", "ended before the last rank"}};
	buf_str(part->out, "<ul class=\"keys small\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		buf_printf(part->out, "<li><span class=\"swatch c-%s\"></span>%s</li>\n", all[i][0], all[i][1]);
	buf_str(part->out, "</ul>\n");
}

void section_ranks(const struct part *part)
{
	struct rows rows = part_rows(part, "ranks");
	// A terminal shows only the ranks that worked longest, if there are many; the others wait for them.
	bool many = !is_page(part) && !part->is_whole && rows.n > TEXT_ROWS_MAX;
	if (many)
		rows_sort(&rows, "work_s", NULL);
	section_begin(part, "ranks", many ? "Ranks that worked longest" : title_of_section(SECTION_RANKS));
	if (is_page(part))
		keys(part);
	part_grid(part, &rank_grid, &rows, (struct limits){TEXT_ROWS_MAX, PAGE_ROWS_MAX, PRINT_RANKS});
	section_end(part);
}

/* ---- load imbalance: a row for each quantity ---- */

static const struct spread *spread_of(const struct object_at *row)
{
	return row->data;
}

static bool is_work(const struct object_at *row)
{
	return strcmp(row->outer->field->key, "waiting_s") != 0 && strcmp(row->outer->field->key, "end_wait_s") != 0;
}

static void quantity(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct field *field = row->outer->field;
	buf_str(out, field->title);
	if (is_page)
		buf_printf(out, " <span class=\"faint small\">%s</span>", field->meaning);
}

static void most_of_all(struct buf *out, const struct object_at *row, bool is_page)
{
	int64_t at = spread_of(row)->max_at;
	if (is_page)
		part_most_of_all(out, job_of(row), spread_of(row));
	else if (at >= 0 && value_ok(job_of(row)->ranks[at].rank))
		buf_i64(out, job_of(row)->ranks[at].rank);
}

static void imbalance(struct buf *out, const struct object_at *row, bool is_page)
{
	if (is_work(row)) // imbalance is waste only for work
		(is_page ? part_percent : human_percent)(out, spread_of(row)->imbalance_percent);
}

static bool is_compared(const struct job_findings *job, const struct job_rank *rank)
{
	if (rank->nested || rank->ended_early)
		return false;
	return job->compared_step == NULL || (rank->step != NULL && strcmp(rank->step, job->compared_step) == 0);
}

// Fields of ranks have the same keys as the spreads.
static void strip(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct job_findings *job = job_of(row);
	double *values = calloc_array(job->n_ranks, sizeof(*values));
	for (size_t i = 0; values != NULL && i < job->n_ranks; i++) {
		const struct object_at rank = {&rank_type, &job->ranks[i], row->outer, i, NULL};
		values[i] = is_compared(job, &job->ranks[i]) ? row_number(&rank, NULL, row->outer->field->key)
							     : (double)NAN;
	}
	if (values != NULL)
		part_strip(out, values, job->n_ranks, spread_of(row));
	free(values);
}

static const struct column balance_columns[] = {
	{NULL, "", COLUMN_NAME, .write = quantity},
	{"min"},
	{"mean"},
	{"max"},
	{"max", "rank", .only = ON_TEXT, .write = most_of_all},
	{"std"},
	{"imbalance_percent", .write = imbalance},
	{NULL, "rank of max", COLUMN_TEXT, ON_PAGE, .write = most_of_all},
	{NULL, "by rank, from 0", COLUMN_TEXT, ON_PAGE, .write = strip},
};
static const struct grid balance_grid = GRID("balance-table", balance_columns, .is_fixed = true);

static struct rows spreads(const struct part *part)
{
	const struct object_at document = {&job_report_type, part->document, NULL, 0, NULL};
	const size_t n = imbalance_type.n_fields;
	struct rows rows = {.at = arena_alloc(part->document->arena, n, sizeof(*rows.at))};
	struct object_at *around = arena_alloc(part->document->arena, n + 1, sizeof(*around));
	if (rows.at == NULL || around == NULL) {
		part->out->failed = -ENOMEM;
		return (struct rows){0};
	}
	around[n] = document;
	for (size_t i = 0; i < n; i++) {
		const struct field *field = &imbalance_type.fields[i];
		around[i] = (struct object_at){&imbalance_type, part->job, &around[n], 0, field};
		if (field->object != &spread_type ||
			((const struct spread *)field_object(field, &around[i]))->count == 0)
			continue;
		rows.at[rows.n++] = (struct object_at){&spread_type, field_object(field, &around[i]), &around[i], 0,
			NULL};
	}
	return rows;
}

/* ---- text ---- */

static void waiting_text(struct buf *out, const struct job_findings *job)
{
	const struct job_sums sums = job_sums(job);
	if (isnan(sums.waiting_s))
		return;
	buf_str(out, "In blocks that wait for other ranks, the ranks spent a total of ");
	human_time(out, sums.waiting_s);
	if (sums.duration_s > 0) {
		buf_str(out, ", ");
		human_percent(out, sums.waiting_s / sums.duration_s * 100);
		buf_str(out, " of their time");
	}
	if (isfinite(job->waiting_j)) {
		buf_str(out, ", using ");
		human_energy(out, job->waiting_j);
	}
	buf_char(out, '.');
}

static void end_text(struct buf *out, const struct job_findings *job)
{
	static const double end_wait_reported = 0.01; // share of the job's time; normal start and end take less
	const struct spread *s = &job->end_wait_s;
	if (!(s->max > end_wait_reported * job->total.duration_s) || s->max_at < 0)
		return;
	buf_str(out, "On average ranks ended ");
	human_time(out, s->mean);
	buf_str(out, " before the last one, ");
	if (value_ok(job->ranks[s->max_at].rank))
		buf_printf(out, "rank %lld ", (long long)job->ranks[s->max_at].rank);
	human_time(out, s->max);
	buf_char(out, '.');
}

static void sentences(const struct part *part)
{
	static void (*const all[])(struct buf *, const struct job_findings *) = {job_phrase_slowest, waiting_text,
		end_text};
	struct buf sentence;
	buf_init(&sentence, 1 << 14);
	buf_str(part->out, is_page(part) ? "<ul class=\"balance\">\n" : "");
	for (size_t i = 0; i < (is_page(part) ? ARRAY_SIZE(all) : 1); i++) {
		buf_clear(&sentence);
		all[i](&sentence, part->job);
		if (sentence.size == 0 || sentence.failed != 0)
			continue;
		buf_str(part->out, is_page(part) ? "<li>" : "\n");
		if (is_page(part))
			html_text(part->out, sentence.data);
		else
			html_section_note(part, sentence.data);
		buf_str(part->out, is_page(part) ? "</li>\n" : "");
	}
	buf_str(part->out, is_page(part) ? "</ul>\n" : "");
	buf_finish(&sentence);
}

void section_balance(const struct part *part)
{
	const struct job_findings *job = part->job;
	struct rows rows = spreads(part);
	char title[100];
	bool is_one = job->duration_s.count < 2; // no rank is left to compare with, because others ended early
	if (is_one && job->n_ended_early == 0)
		return;
	snprintf(title, sizeof(title), "%s", title_of_section(SECTION_BALANCE));
	if (job->n_steps > 1 && !is_one)
		snprintf(title, sizeof(title), "%s (step %.40s)", title_of_section(SECTION_BALANCE),
			job->compared_step != NULL ? job->compared_step : "without a name");
	section_begin(part, "balance", title);
	if (is_one) {
		html_section_notef(part,
			"%zu rank%s that ended early %s not compared: no other rank is left to compare with.",
			job->n_ended_early, job->n_ended_early == 1 ? "" : "s", job->n_ended_early == 1 ? "is" : "are");
		section_end(part);
		return;
	}
	if (is_page(part))
		sentences(part);
	part_grid(part, &balance_grid, &rows, (struct limits){SIZE_MAX, SIZE_MAX, PRINT_NONE});
	if (is_page(part))
		html_section_note(part,
			"Imbalance is (max − mean) / max: the part of the longest rank's time that would be "
			"saved if all ranks took the mean time. The grey line is the mean, the orange line "
			"the rank with the maximum.");
	else
		sentences(part);
	section_end(part);
}
