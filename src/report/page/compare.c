/* The page that compares runs: order of its sections, verdicts in words, and the table of runs. */
#include "report/page/compare.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/report.h"
#include "report/section/html_section.h"

enum { TITLE_CEILING = 1 << 16, COMMAND_CEILING = 1 << 22, NAMES_IN_TITLE = 4 };

static const struct run *run_of(const struct compare_page *page, size_t i)
{
	return page->runs[i].charts != NULL ? page->runs[i].charts->findings->run : NULL;
}

/* ---- verdicts in words ---- */

static void percent(struct buf *out, double value, double error)
{
	int decimals = (isnan(error) || error == 0 ? fabs(value) / 100 : error) >= 0.1 ? 1 : 2;
	buf_fixed(out, fabs(value), decimals);
	if (!isnan(error)) {
		buf_str(out, " ± ");
		buf_fixed(out, fmax(error, 0.01), decimals);
	}
	buf_str(out, " %");
}

// "8.1 ± 0.2 % less energy", "no significant energy difference"
static void energy_description(const struct compare_page *page, size_t run)
{
	struct buf *out = page->out;
	struct compare_change change = compare_change(compare_energy(page, 0), compare_energy(page, run));
	if (change.verdict == COMPARE_UNKNOWN || !isfinite(change.percent)) {
		buf_str(out, "energy not comparable");
		return;
	}
	if (change.verdict == COMPARE_NO_CHANGE) {
		buf_str(out, "no significant energy difference: the intervals overlap");
		return;
	}
	buf_str(out, "<strong>");
	if (change.percent >= 100) {
		human_number(out, 1 + change.percent / 100, 3);
		buf_str(out, " times the energy</strong>");
		return;
	}
	percent(out, change.percent, change.error_percent);
	buf_printf(out, " %s energy</strong>", change.percent < 0 ? "less" : "more");
}

static void time_text(const struct compare_page *page, size_t run)
{
	struct buf *out = page->out;
	struct compare_change change = compare_change(compare_time(page, 0), compare_time(page, run));
	if (!isfinite(change.percent))
		return;
	if (fabs(change.percent) < 0.05) {
		buf_str(out, "; same time");
		return;
	}
	buf_str(out, "; ");
	percent(out, change.percent, change.error_percent);
	buf_str(out, change.percent < 0 ? " less time" : " more time");
}

static void block_description(const struct compare_page *page, size_t run)
{
	size_t counts[COMPARE_MORE + 1] = {0};
	const struct comparison *c = page->comparison;
	struct buf *out = page->out;
	for (size_t b = 0; c->has_energy && b < c->n_blocks; b++)
		counts[compare_change(compare_figure_of(c, &c->block_energy[b], page->runs[0].name),
			compare_figure_of(c, &c->block_energy[b], page->runs[run].name))
				.verdict]++;
	if (counts[COMPARE_LESS] + counts[COMPARE_MORE] + counts[COMPARE_NO_CHANGE] == 0)
		return;
	static const struct {
		enum compare_verdict verdict;
		const char *text;
	} words[] = {{COMPARE_LESS, "less"}, {COMPARE_MORE, "more"},
		{COMPARE_NO_CHANGE, "without significant difference"}};
	const char *between = "";
	buf_printf(out, "; energy of %zu code block%s: ", c->n_blocks, c->n_blocks == 1 ? "" : "s");
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t n = counts[words[i].verdict];
		if (n == 0)
			continue;
		buf_printf(out, "%s%zu %s", between, n, words[i].text);
		between = ", ";
	}
}

static void differences(const struct compare_page *page)
{
	buf_str(page->out, "<ul class=\"differences\">\n");
	for (size_t i = 1; i < page->n_runs; i++) {
		buf_str(page->out, "<li>");
		compare_run_name(page, i);
		buf_str(page->out, ": ");
		energy_description(page, i);
		time_text(page, i);
		block_description(page, i);
		buf_str(page->out, ".</li>\n");
	}
	buf_str(page->out, "</ul>\n");
}

void compare_head(const struct compare_page *page)
{
	struct buf *out = page->out;
	buf_str(out, "<h1>");
	for (size_t i = 0; i < page->n_runs && i < NAMES_IN_TITLE; i++) {
		buf_str(out, i == 0 ? "" : i + 1 == page->n_runs ? " and " : ", ");
		part_name(out, page->runs[i].name);
	}
	if (page->n_runs > NAMES_IN_TITLE)
		buf_printf(out, " and %zu more", page->n_runs - NAMES_IN_TITLE);
	buf_str(out, " compared</h1>\n<p class=\"faint\">Differences from ");
	compare_run_name(page, 0);
	buf_str(out, " that exceed the errors of both:</p>\n");
	differences(page);
	if (page->comparison->n_warnings == 0)
		return;
	buf_str(out, "<ul class=\"notes\" aria-label=\"Notes on these figures\">\n");
	for (size_t i = 0; i < page->comparison->n_warnings; i++) {
		buf_str(out, "<li>");
		html_text(out, page->comparison->warnings[i]);
		buf_str(out, "</li>\n");
	}
	buf_str(out, "</ul>\n");
}

/* ---- the runs ---- */

static void command_cell(struct buf *out, const struct run *run)
{
	struct buf command;
	buf_init(&command, COMMAND_CEILING);
	command_text(&command, report_segment(run));
	buf_str(out, "<code>");
	part_name(out, command.data);
	buf_str(out, "</code>");
	const char *label = run_metadata(run, META_KEY_LABEL);
	if (label != NULL && label[0] != '\0') {
		buf_str(out, "<br><span class=\"small\">");
		part_name(out, label);
		buf_str(out, "</span>");
	}
	buf_finish(&command);
}

static void run_row(const struct compare_page *page, size_t i)
{
	struct buf *out = page->out;
	const struct run *run = run_of(page, i);
	buf_str(out, "<tr><th scope=\"row\" class=\"name\">");
	compare_run_name(page, i);
	buf_str(out, "</th>");
	if (run == NULL) {
		buf_str(out,
			"<td class=\"name faint\">results saved by wattle blocks</td><td></td><td></td><td></td><td></td></tr>\n");
		return;
	}
	const struct findings *f = page->runs[i].charts->findings;
	buf_str(out, "<td class=\"name\">");
	command_cell(out, run);
	buf_str(out, "</td><td class=\"text\">");
	if (run->n_segments > 0 && value_ok(run->segments[0].wall_start_ns))
		start_time_text(out, run->segments[0].wall_start_ns);
	buf_str(out, "</td><td class=\"text\">");
	if (run_metadata(run, META_KEY_HOST) != NULL)
		part_name(out, run_metadata(run, META_KEY_HOST));
	buf_str(out, "</td><td class=\"text\">");
	phrase_ending(out, report_segment(run));
	if (!f->complete)
		buf_str(out, " <span class=\"warn\">not complete</span>");
	buf_str(out, "</td><td class=\"text\">");
	if (!isnan(f->total_j))
		part_tag(out, f->provenance);
	buf_str(out, "</td></tr>\n");
}

void compare_commands(const struct compare_page *page)
{
	buf_str(page->out,
		"<div class=\"wide\"><table id=\"runs\"><thead><tr><th scope=\"col\" class=\"name\">Run</th>"
		"<th scope=\"col\" class=\"name\">Command</th><th scope=\"col\" class=\"text\">Began</th>"
		"<th scope=\"col\" class=\"text\">On</th><th scope=\"col\" class=\"text\">Ended</th>"
		"<th scope=\"col\" class=\"text\">Energy is</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < page->n_runs; i++)
		run_row(page, i);
	buf_str(page->out, "</tbody></table></div>\n");
}

void compare_notes(const struct compare_page *page)
{
	buf_str(page->out,
		"<p class=\"faint small\">± is half of a 95 % interval and covers meters and attribution, not the scatter between runs "
		"of one program: <code>wattle bench</code> repeats runs and reports whether a difference is significant. "
		"Hollow dots mark values without a known interval: times, memory and resource usage. "
		"An arrow marks a value beyond the scale. ");
	buf_printf(page->out, "%s</p>\n", unresolved_note);
}

/* ---- the page ---- */

static void title(struct buf *out, const struct page_run *runs, size_t n_runs)
{
	for (size_t i = 0; i < n_runs && i < NAMES_IN_TITLE; i++)
		buf_printf(out, "%s%.100s", i == 0 ? "" : ", ", runs[i].name);
	buf_str(out, n_runs > NAMES_IN_TITLE ? " … compared · wattle" : " compared · wattle");
}

void page_compare(const struct comparison *comparison, const struct page_run *runs, size_t n_runs,
	const char *statistic, struct buf *out)
{
	static void (*const parts[])(const struct compare_page *) = {compare_head, compare_commands, compare_figures,
		compare_power, compare_ledgers, compare_domains, compare_blocks, compare_usage, compare_notes};
	const struct compare_page page = {out, comparison, runs, n_runs, statistic};
	struct buf text;
	buf_init(&text, TITLE_CEILING);
	title(&text, runs, n_runs);
	page_begin(out, text.data, PAGE_SCRIPT_COMPARE, false);
	buf_finish(&text);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i](&page);
	page_end(out, PAGE_SCRIPT_COMPARE);
}
