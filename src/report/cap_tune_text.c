#include "report/cap_report.h"

#include "base/util.h"
#include "report/report.h"
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>

enum { NOTE_INDENT = 2, CELL_CEILING = 4096 };

void cap_tune_note(struct cap_tune_report *report, const char *format, ...)
{
	va_list args;
	if (report->n_notes == CAP_TUNE_NOTES)
		return;
	va_start(args, format);
	vsnprintf(report->notes[report->n_notes++], CAP_TUNE_NOTE_SIZE, format, args);
	va_end(args);
}

/* ---- formatting ---- */

static void limit(struct buf *out, const struct cap_tune_report *report, double value)
{
	human_cap(out, value, cap_kind_unit(report->what));
}

static const char *objective_text(enum tune_goal goal)
{
	static const char *const words[] = {
		[TUNE_ED2P] = "energy × time²",
		[TUNE_EDP] = "energy × time",
		[TUNE_ENERGY] = "energy",
		[TUNE_SLOWDOWN] = "energy",
	};
	return words[goal];
}

static void a_step(struct buf *out, const struct cap_tune_report *report)
{
	if (report->step == NULL) {
		buf_str(out, "a run");
		return;
	}
	buf_str(out, report->is_metric ? "a unit of " : "a call of ");
	text_fit_middle(out, report->step, 30);
}

static void percent(struct buf *out, double value)
{
	buf_fixed(out, fabs(value), fabs(value) < 9.95 ? 1 : 0);
}

// "12.3 % (11.2 … 13.5)": writes the magnitude, with the bounds in the direction of the value.
static void change(struct buf *out, const struct tune_interval *interval)
{
	bool is_back = interval->value < 0;
	percent(out, interval->value);
	buf_str(out, " %");
	if (isnan(interval->low) || isnan(interval->high))
		return;
	double sign = is_back ? -1 : 1, low = sign * (is_back ? interval->high : interval->low),
	       high = sign * (is_back ? interval->low : interval->high);
	buf_str(out, " (");
	buf_fixed(out, low, 1);
	buf_str(out, " … ");
	buf_fixed(out, high, 1);
	buf_char(out, ')');
}

/* ---- head ---- */

static void headline(const struct cap_tune_report *report, struct buf *out, const struct style *style)
{
	const struct tune_result *result = &report->result;
	buf_char(out, '\n');
	buf_str(out, style->title);
	text_add_printable(out, report->device, strlen(report->device));
	buf_str(out, style->off);
	if (report->label != NULL && report->label[0] != '\0') {
		buf_str(out, ", ");
		text_fit(out, report->label, 40, false);
	}
	if (report->has_result) {
		buf_printf(out, ": least %s of ", objective_text(result->goal));
		a_step(out, report);
		if (result->goal == TUNE_SLOWDOWN) {
			buf_str(out, ", at most ");
			human_number(out, result->slowdown_percent, 3);
			buf_str(out, " % longer");
		}
	}
	buf_char(out, '\n');
	if (report->command != NULL) {
		buf_str(out, "  ");
		text_fit_middle(out, report->command, TEXT_WIDTH - 2);
		buf_char(out, '\n');
	}
	buf_char(out, '\n');
}

/* ---- text ---- */

static void flush(struct buf *out, struct buf *text)
{
	if (text->failed == 0 && text->size > 0) {
		buf_str(out, "  ");
		text_wrap(out, out->size - 2, NOTE_INDENT, text->data);
		buf_char(out, '\n');
	}
	buf_clear(text);
}

static void write_expected(const struct cap_tune_report *report, struct buf *text)
{
	const struct tune_result *result = &report->result;
	limit(text, report, report->chosen);
	if (cap_tune_is_chosen(report, result->limits[0].limit)) {
		buf_str(text, " is best: no lower limit was better.");
		return;
	}
	buf_str(text, ": expect ");
	change(text, &result->saving_percent);
	buf_str(text, result->saving_percent.value >= 0 ? " less energy and " : " more energy and ");
	change(text, &result->slowdown);
	buf_printf(text, " %s %s than at ", result->slowdown.value >= 0 ? "longer" : "shorter",
		report->step == NULL ? "runs" : "steps");
	limit(text, report, result->limits[0].limit);
	buf_char(text, '.');
}

static void write_range(const struct cap_tune_report *report, struct buf *text)
{
	const struct tune_interval *range = &report->result.chosen_range;
	if (isnan(range->low) || isnan(range->high) || range->high - range->low < 1)
		return;
	buf_str(text, "The best limit lies between ");
	limit(text, report, range->low);
	buf_str(text, " and ");
	limit(text, report, range->high);
	buf_str(text, " (95 %).");
}

static void write_model(const struct cap_tune_report *report, struct buf *text)
{
	const struct tune_result *result = &report->result;
	if (result->model != TUNE_NO_MODEL) {
		buf_printf(text, "Model %s, whose residual at the measured limits is ",
			tune_model_name(result->model));
		human_number(text, result->residual_percent, 2);
		buf_str(text, " %; ");
	}
	buf_str(text, result->model != TUNE_NO_MODEL ? "windows with" : "Windows with");
	buf_str(text, " one limit differ by ");
	human_number(text, result->noise_percent, 2);
	buf_str(text, " %");
	if (fabs(result->drift_percent) >= 0.05) {
		buf_str(text, "; the program drifted by ");
		human_number(text, fabs(result->drift_percent), 2);
		buf_str(text, " %, which was subtracted");
	}
	buf_char(text, '.');
}

static void write_source(const struct cap_tune_report *report, struct buf *text)
{
	if (report->source == NULL)
		return;
	buf_printf(text, "%zu windows, ", report->n_windows);
	human_time(text, report->measured_s);
	buf_str(text, " measured in ");
	human_time(text, report->elapsed_s);
	buf_printf(text, "; energy of %s by %s", report->device, report->source);
	if (report->scale_error > 0) {
		buf_str(text, ", whose calibration may be off by ");
		human_percent(text, 100 * report->scale_error);
		buf_str(text, ", equally for each limit");
	}
	buf_char(text, '.');
}

static void write_next(const struct cap_tune_report *report, struct buf *text)
{
	const char *option = report->what == CAP_CLOCKS ? "--clocks " : "";
	const char *first = report->device;
	int length = (int)strcspn(first, ",");
	if (cap_tune_is_chosen(report, report->result.limits[0].limit) || (!report->is_whole && !report->is_applied))
		return;
	if (report->is_applied) {
		limit(text, report, report->chosen);
		buf_printf(text, " is now in force and persistent; `wattle cap reset %.*s` undoes this.", length,
			first);
		return;
	}
	buf_printf(text, "Next: wattle cap set %.*s %s", length, first, option);
	buf_fixed(text, report->chosen, fabs(report->chosen - round(report->chosen)) < 0.05 ? 0 : 1);
	buf_str(text, " -- CMD");
}

// Writes the tuner's note with a capital first letter; notes are phrases.
static void sentence(struct buf *text, const char *phrase)
{
	size_t length = strlen(phrase);
	buf_char(text, phrase[0] >= 'a' && phrase[0] <= 'z' ? (char)(phrase[0] - 'a' + 'A') : phrase[0]);
	buf_str(text, phrase + 1);
	if (length > 1 && strchr(".!?", phrase[length - 1]) == NULL)
		buf_char(text, '.');
}

static void write_end(const struct cap_tune_report *report, struct buf *text)
{
	if (report->is_whole)
		return;
	buf_str(text, report->has_result ? "The search is not complete: " : "No best limit found: ");
	buf_str(text, report->end != NULL && report->end[0] != '\0' ? report->end : "too little was measured");
	buf_char(text, '.');
}

void cap_tune_text(const struct cap_tune_report *report, struct buf *out, bool colour)
{
	static void (*const sentences[])(const struct cap_tune_report *, struct buf *) = {write_expected, write_range,
		write_model, write_source, write_next};
	const struct style *style = style_for(colour);
	struct buf text;
	buf_init(&text, CELL_CEILING);
	headline(report, out, style);
	if (report->has_result) {
		cap_tune_table(report, out, style);
		buf_char(out, '\n');
	}
	write_end(report, &text);
	flush(out, &text);
	for (size_t i = 0; report->has_result && i < ARRAY_SIZE(sentences); i++) {
		sentences[i](report, &text);
		flush(out, &text);
	}
	if (report->has_result && report->result.note[0] != '\0') {
		sentence(&text, report->result.note);
		flush(out, &text);
	}
	for (size_t i = 0; i < report->n_notes; i++) {
		buf_str(&text, report->notes[i]);
		flush(out, &text);
	}
	buf_finish(&text);
}
