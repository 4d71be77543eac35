#include "report/bench.h"

#include "base/util.h"
#include "report/report.h"
#include "report/section/grid.h"

#include <errno.h>

enum { NOTE_INDENT = 2, COMMAND_INDENT = 6, CELL_CEILING = 4096 };

// Share of the energy above which a measurement error gets a note.
static const double DOUBTFUL = 0.25;
// The interval of five runs has a confidence of 93.75 %.
static const double NEARLY_95 = 0.93;

/* ---- head ---- */

static void headline(const struct bench_result *result, struct buf *out, const struct style *style)
{
	bool several = result->findings.n_commands > 1;
	buf_printf(out, "%s%zu run%s%s%s", style->title, result->rounds, result->rounds == 1 ? "" : "s",
		several ? " each" : "", style->off);
	if (several)
		buf_printf(out, " in random order, seed %llu", (unsigned long long)result->seed);
	buf_printf(out, ", after %zu to warm up; ", result->warmup);
	human_time(out, result->elapsed_s);
	buf_str(out, " in all\n\n");
	for (size_t c = 0; c < result->findings.n_commands; c++) {
		if (several)
			buf_printf(out, "%4zu  ", c + 1);
		else
			buf_str(out, "  ");
		text_fit_middle(out, result->commands[c].text, TEXT_WIDTH - COMMAND_INDENT);
		buf_char(out, '\n');
	}
	buf_char(out, '\n');
}

/* ---- table: a row for each quantity of each command, an estimate in its bench_command ---- */

static const struct bench_findings *findings_of(const struct object_at *row)
{
	return &((const struct bench_result *)object_document(row))->findings;
}

static const struct field *field_of(size_t quantity)
{
	const struct field *field = bench_command_type.fields;
	while (strcmp(field->key, bench_quantity_names[quantity]) != 0)
		field++;
	return field;
}

static void quantity(struct buf *out, const struct object_at *row, bool is_page)
{
	buf_str(out, row->outer->index == 0 ? row->outer->field->title : "");
}

static void command(struct buf *out, const struct object_at *row, bool is_page)
{
	if (findings_of(row)->n_commands > 1)
		buf_printf(out, "%zu", row->outer->index + 1);
}

// "801 … 823 ms", "0.998 s … 1.02 s": writes the unit once if both values share it.
static void interval(struct buf *out, const struct object_at *row, bool is_page)
{
	struct buf low, high;
	buf_init(&low, CELL_CEILING);
	buf_init(&high, CELL_CEILING);
	bool is_there = row_print(&low, row, "low", is_page) && row_print(&high, row, "high", is_page);
	const char *unit = is_there ? strrchr(low.data, ' ') : NULL, *other = is_there ? strrchr(high.data, ' ') : NULL;
	if (is_there) {
		bool is_same = unit != NULL && other != NULL && strcmp(unit, other) == 0;
		buf_add(out, low.data, is_same ? (size_t)(unit - low.data) : low.size);
		buf_printf(out, " … %s", high.data);
	} else {
		buf_str(out, "n/a");
	}
	buf_finish(&low);
	buf_finish(&high);
}

static void percent(struct buf *out, double percent_value)
{
	human_number(out, percent_value, percent_value < 10 ? 2 : 3);
}

static void difference(struct buf *out, const struct bench_comparison *c)
{
	if (c->ratio >= 2) {
		human_number(out, c->ratio, 3);
		buf_str(out, " times (");
		human_number(out, c->low, 3);
		buf_str(out, " … ");
		human_number(out, c->high, 3);
		buf_char(out, ')');
		return;
	}
	bool less = c->ratio < 1;
	percent(out, 100 * fabs(c->ratio - 1));
	buf_printf(out, " %% %s (", less ? "less" : "more");
	percent(out, 100 * fabs((less ? c->high : c->low) - 1));
	buf_str(out, " … ");
	percent(out, 100 * fabs((less ? c->low : c->high) - 1));
	buf_str(out, " %)");
}

static void verdict(struct buf *out, const struct bench_comparison *c)
{
	if (c->different) {
		difference(out, c);
		return;
	}
	bool scatters = c->low < c->high;
	if (isnan(c->smallest_effect_percent)) {
		buf_str(out, scatters ? "too few runs" : "no difference seen");
		return;
	}
	buf_str(out, "no difference seen (");
	if (c->smallest_effect_percent < 100) {
		percent(out, c->smallest_effect_percent);
		buf_str(out, " % would be)");
	} else {
		human_number(out, 1 + c->smallest_effect_percent / 100, 2);
		buf_str(out, " times would be)");
	}
}

static const struct bench_comparison *find(const struct bench_findings *findings, size_t a, size_t b, size_t quantity)
{
	for (size_t i = 0; i < findings->n_comparisons; i++) {
		const struct bench_comparison *c = &findings->comparisons[i];
		if (c->a == a && c->b == b && c->quantity == (enum bench_quantity)quantity)
			return c;
	}
	return NULL;
}

static bool is_known(const struct bench_findings *findings, size_t quantity)
{
	for (size_t c = 0; c < findings->n_commands; c++)
		if (findings->estimates[c][quantity].n > 0)
			return true;
	return false;
}

static void against_first(struct buf *out, const struct object_at *row, bool is_page)
{
	size_t c = row->outer->index;
	const struct bench_comparison *found = c > 0 ? find(findings_of(row), 0, c, row->index) : NULL;
	if (found != NULL)
		verdict(out, found);
}

// NaN for a single run, which has no interval.
static double min_confidence(const struct bench_findings *findings)
{
	double least = 0.95;
	for (size_t c = 0; c < findings->n_commands; c++)
		least = fmin(least, findings->estimates[c][BENCH_TIME].confidence);
	return least;
}

static const char *interval_title(double confidence)
{
	if (confidence >= 0.95)
		return "95 % interval";
	return confidence >= NEARLY_95 ? "94 % interval" : "interval"; // "94 %" for five runs; a note covers fewer runs
}

static void estimates(const struct object_at *document, struct buf *out, const struct style *style)
{
	const struct bench_findings *findings = findings_of(document);
	const struct column columns[] = {
		{NULL, "", COLUMN_NAME, .write = quantity},
		{NULL, "", .write = command, .is_optional = true},
		{"median"},
		{NULL, interval_title(min_confidence(findings)), .write = interval},
		{NULL, "against 1", COLUMN_TEXT, .write = against_first, .is_optional = true},
	};
	const struct grid grid = GRID(NULL, columns);
	const size_t n = findings->n_commands * BENCH_QUANTITIES;
	struct object_at *commands = calloc_array(2 * n, sizeof(*commands));
	struct rows rows = {.at = commands + n};
	for (size_t i = 0; commands != NULL && i < n; i++) {
		size_t q = i / findings->n_commands, c = i % findings->n_commands;
		const struct field *field = field_of(q);
		commands[i] = (struct object_at){&bench_command_type, NULL, document, c, field};
		if (q != BENCH_TARGET_ENERGY || is_known(findings, q))
			rows.at[rows.n++] = (struct object_at){field->object, field_object(field, &commands[i]),
				&commands[i], q, NULL};
	}
	rows.shown = rows.n;
	if (commands != NULL)
		grid_text(&grid, &rows, out, style);
	else
		out->failed = -ENOMEM;
	free(commands);
}

/* ---- table of the other pairs, with --compare all ---- */

static const struct bench_comparison *comparison_of(const struct object_at *row)
{
	return row->data;
}

static bool is_other_pair(const struct object_at *row)
{
	return comparison_of(row)->a != 0;
}

static void pair(struct buf *out, const struct object_at *row, bool is_page)
{
	buf_printf(out, "%zu against %zu", comparison_of(row)->b + 1, comparison_of(row)->a + 1);
}

static void pair_quantity(struct buf *out, const struct object_at *row, bool is_page)
{
	buf_str(out, field_of(comparison_of(row)->quantity)->title);
}

static void pair_verdict(struct buf *out, const struct object_at *row, bool is_page)
{
	verdict(out, comparison_of(row));
}

static const struct column pair_columns[] = {
	{NULL, "pair", COLUMN_NAME, .write = pair},
	{NULL, "", COLUMN_TEXT, .write = pair_quantity},
	{NULL, "", COLUMN_TEXT, .write = pair_verdict},
};
static const struct grid pairs_grid = GRID(NULL, pair_columns, .heading = "Other pairs", .is_shown = is_other_pair);

/* ---- notes ---- */

static void note(struct buf *out, struct buf *text)
{
	if (text->failed == 0 && text->size > 0) {
		text_wrap(out, out->size, NOTE_INDENT, text->data);
		buf_char(out, '\n');
	}
	buf_clear(text);
}

static void note_end(const struct bench_result *result, struct buf *text)
{
	switch (result->end) {
	case BENCH_ALL_RUNS:
		return;
	case BENCH_NARROW_ENOUGH:
		buf_str(text, "Stopped when the half-width of each interval was below ");
		break;
	case BENCH_MAX_RUNS:
		buf_str(text, "Stopped by --max-runs: the half-width of the widest interval is ");
		human_number(text, result->width_percent, 2);
		buf_str(text, " %, not below ");
		break;
	case BENCH_INTERRUPTED:
		buf_printf(text, "Interrupted: the result contains the %zu complete rounds.", result->rounds);
		return;
	case BENCH_FAILED:
		buf_printf(text, "A command failed: the result contains the %zu rounds before it.", result->rounds);
		return;
	}
	human_number(text, result->until_percent, 2);
	buf_str(text, " % of its median.");
}

static void note_confidence(const struct bench_result *result, struct buf *text)
{
	double least = min_confidence(&result->findings);
	if (least < NEARLY_95)
		buf_printf(text,
			"So few runs give no 95 %% interval: these intervals contain the true median with "
			"%.0f %% probability. Use at least six runs.",
			100 * least);
}

static double largest_error_j(const struct bench_result *result, bool *ret_uncertain)
{
	double largest = (double)NAN;
	*ret_uncertain = false;
	for (size_t c = 0; c < result->findings.n_commands; c++) {
		double error_j = result->commands[c].error_j;
		largest = fmax(largest, error_j);
		*ret_uncertain |= error_j > DOUBTFUL * result->findings.estimates[c][BENCH_ENERGY].median;
	}
	return largest;
}

static void note_energy(const struct bench_result *result, struct buf *text)
{
	if (result->provenance == NULL) {
		buf_str(text, "No energy is available on this machine; `wattle sensors` shows why.");
		return;
	}
	bool uncertain;
	double error_j = largest_error_j(result, &uncertain);
	bool estimated = strcmp(result->provenance, provenance_name(PROVENANCE_ESTIMATED)) == 0;
	buf_str(text, "Energy and power are those of the whole machine while a command ran, including idle power, ");
	buf_printf(text, "%s by %s", estimated ? "ESTIMATED from the load" : result->provenance, result->meter);
	if (!isnan(error_j)) {
		buf_str(text, "; a run's error, ");
		human_error(text, error_j);
		buf_str(text, ", is not in the intervals");
	}
	buf_char(text, '.');
	if (is_known(&result->findings, BENCH_TARGET_ENERGY))
		buf_str(text, " The share is the energy attributed to the command.");
	if (uncertain)
		buf_str(text, " This error is large compared with the energy; use longer runs.");
}

static void note_effect(const struct bench_result *result, struct buf *text)
{
	for (size_t i = 0; i < result->findings.n_comparisons; i++)
		if (!result->findings.comparisons[i].different &&
			!isnan(result->findings.comparisons[i].smallest_effect_percent)) {
			buf_str(text,
				"In brackets after \"no difference seen\": the smallest difference that this "
				"number of runs detects with 80 % probability.");
			return;
		}
}

static void note_stability(const struct bench_result *result, struct buf *text)
{
	const struct bench_stability *s = &result->stability;
	size_t runs = result->rounds * result->findings.n_commands;
	if (s->limit_s == 0)
		return;
	if (!s->possible) {
		buf_str(text,
			"Neither temperature nor power could be read, so the runs started without waiting "
			"for the machine to settle.");
	} else if (s->unsettled > 0) {
		buf_printf(text, "Before %zu of %zu runs the machine was still warmer or busier than at first, after ",
			s->unsettled, runs);
		human_time(text, s->waited_s);
		buf_str(text, " of waiting in total; wait longer with --settle 30s.");
	}
}

static void note_failures(const struct bench_result *result, struct buf *text)
{
	for (size_t c = 0; c < result->findings.n_commands; c++)
		if (result->commands[c].failures > 0)
			buf_printf(text, "%sCommand %zu failed in %zu of %zu runs.", text->size > 0 ? " " : "", c + 1,
				result->commands[c].failures, result->series[c].n);
}

void bench_text(const struct bench_result *result, struct buf *out, bool colour)
{
	static void (*const notes[])(const struct bench_result *result, struct buf *text) = {note_end, note_failures,
		note_confidence, note_effect, note_energy, note_stability};
	const struct object_at document = {.type = &bench_type, .data = result};
	const struct style *style = style_for(colour);
	headline(result, out, style);
	estimates(&document, out, style);
	grid_list(&pairs_grid, &document, "comparisons", out, style);
	buf_char(out, '\n');
	struct buf text;
	buf_init(&text, CELL_CEILING);
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		notes[i](result, &text);
		note(out, &text);
	}
	buf_finish(&text);
}
