/* A self-contained page: no script, one chart, and the same figures as a table. */
#include "report/cap_report.h"

#include "base/util.h"
#include "report/html.h"
#include "report/report.h"

static const char HEAD[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
	"base-uri 'none'; form-action 'none'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n<title>Power limits tried by wattle</title>\n<style>\n"
	":root{--back:#fff;--ink:#1b1f24;--faint:#5b6570;--line:#d5dae0;--point:#0b62c4;--curve:#8a5a00;--chosen:#1a7f37}\n"
	"@media(prefers-color-scheme:dark){:root{--back:#14181d;--ink:#e6eaee;--faint:#9aa5b1;--line:#343c46;"
	"--point:#6cb2ff;--curve:#e0b050;--chosen:#5bd07a}}\n"
	"body{background:var(--back);color:var(--ink);font:16px/1.5 system-ui,sans-serif;max-width:60rem;"
	"margin:2rem auto;padding:0 1rem}\n"
	"h1{font-size:1.4rem}h1,p{overflow-wrap:anywhere}.answer{font-size:1.2rem}.faint{color:var(--faint)}\n"
	"svg{width:100%;height:auto}svg text{fill:var(--ink);font:13px system-ui,sans-serif}svg .faint{fill:var(--faint)}\n"
	".grid{stroke:var(--line)}.bar,.dot{stroke:var(--point)}.dot{fill:var(--point)}.refused{opacity:.45}\n"
	".curve{stroke:var(--curve);fill:none;stroke-width:2}.chosen{stroke:var(--chosen);stroke-width:2;"
	"stroke-dasharray:5 4}.wide{overflow-x:auto}\n"
	"table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th,td{text-align:right;"
	"padding:.3rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}th:first-child,td:first-child{text-align:left}\n"
	"tr.best{font-weight:600}code{overflow-wrap:anywhere}\n"
	"</style>\n</head>\n<body>\n<main>\n";

/* ---- figures ---- */

static void limit(struct buf *out, const struct cap_tune_report *report, double value)
{
	human_cap(out, value, cap_kind_unit(report->what));
}

static void number(struct buf *out, double value, int decimals)
{
	if (isnan(value))
		buf_str(out, "n/a");
	else
		buf_fixed(out, value, decimals);
}

static void print_percent(struct buf *out, double value)
{
	number(out, value, 1);
}

/* ---- parts ---- */

static void answer(const struct cap_tune_report *report, struct buf *out)
{
	const struct tune_result *result = &report->result;
	buf_str(out, "<p class=\"answer\"><strong>");
	limit(out, report, report->chosen);
	buf_str(out, "</strong>");
	if (cap_tune_is_chosen(report, result->limits[0].limit)) {
		buf_str(out, " is best: no lower limit was better.</p>\n");
		return;
	}
	buf_str(out, ": energy less by ");
	cap_tune_interval(out, &result->saving_percent, print_percent, true);
	buf_printf(out, " %%, time per %s more by ", report->step == NULL ? "run" : "step");
	cap_tune_interval(out, &result->slowdown, print_percent, true);
	buf_str(out, " %, relative to ");
	limit(out, report, result->limits[0].limit);
	buf_str(out, ".</p>\n");
}

static void paragraph(struct buf *out, const char *class, const char *text)
{
	buf_printf(out, "<p class=\"%s\">", class);
	html_text(out, text);
	buf_str(out, "</p>\n");
}

static void details(const struct cap_tune_report *report, struct buf *out)
{
	const struct tune_result *result = &report->result;
	buf_str(out, "<p class=\"faint\">In brackets: 95 % intervals. ");
	if (result->model != TUNE_NO_MODEL) {
		buf_printf(out, "The curve is the model %s; its residual at the measured limits is ",
			tune_model_name(result->model));
		number(out, result->residual_percent, 2);
		buf_str(out, " %. ");
	}
	buf_str(out, "Windows with one limit differ by ");
	number(out, result->noise_percent, 2);
	buf_str(out, " %; drift of ");
	number(out, fabs(result->drift_percent), 2);
	buf_printf(out, " %% was subtracted. %zu windows, ", report->n_windows);
	human_time(out, report->measured_s);
	buf_str(out, " measured in ");
	human_time(out, report->elapsed_s);
	buf_printf(out, ", seed %llu.</p>\n", (unsigned long long)report->seed);
}

void cap_tune_part(const struct cap_tune_report *report, struct buf *out, size_t number_of, const char *heading)
{
	buf_printf(out, "<section class=\"tune\">\n<%s>", heading);
	html_text(out, report->device);
	if (report->label != NULL && report->label[0] != '\0') {
		buf_str(out, ", ");
		html_text(out, report->label);
	}
	buf_printf(out, "</%s>\n", heading);
	if (report->command != NULL) {
		buf_str(out, "<p><code>");
		html_text(out, report->command);
		buf_str(out, "</code></p>\n");
	}
	if (!report->is_whole)
		paragraph(out, "answer",
			report->end != NULL && report->end[0] != '\0' ? report->end : "The search is incomplete.");
	if (report->has_result) {
		answer(report, out);
		cap_tune_picture(report, out, number_of);
		cap_tune_table(report, out, NULL);
		details(report, out);
		if (report->result.note[0] != '\0')
			paragraph(out, "faint", report->result.note);
	}
	for (size_t i = 0; i < report->n_notes; i++)
		paragraph(out, "faint", report->notes[i]);
	buf_str(out, "</section>\n");
}

void cap_tune_html(const struct cap_tune_report *reports, size_t n, struct buf *out)
{
	buf_str(out, HEAD);
	for (size_t i = 0; i < n; i++)
		cap_tune_part(&reports[i], out, i, "h1");
	buf_str(out, "</main>\n</body>\n</html>\n");
}
