/* Comparison table: values with intervals, and a small chart of each change from the first run. */
#include "report/page/compare.h"

#include "base/util.h"
#include "report/documents.h"
#include "report/palette.h"
#include "report/report.h"
#include "report/section/html_section.h"

#include <errno.h>
#include <stdio.h>

/* ---- lines ---- */

struct compare_line *compare_line_add(const struct compare_page *page, struct compare_table *table, const char *title,
	void (*print)(struct buf *, double))
{
	struct compare_line *lines = array_reserve(table->lines, table->n_lines, &table->capacity, sizeof(*lines), 16);
	struct compare_figure *figures = calloc_array(page->n_runs, sizeof(*figures));
	if (lines != NULL)
		table->lines = lines;
	if (lines == NULL || figures == NULL) {
		free(figures);
		table->failed = true;
		return NULL;
	}
	for (size_t i = 0; i < page->n_runs; i++)
		figures[i] = (struct compare_figure){(double)NAN, (double)NAN};
	lines[table->n_lines] = (struct compare_line){.title = title, .print = print, .figures = figures};
	return &lines[table->n_lines++];
}

void compare_line_finish(const struct compare_page *page, struct compare_table *table)
{
	if (table->failed || table->n_lines == 0)
		return;
	const struct compare_line *line = &table->lines[table->n_lines - 1];
	for (size_t i = 0; i < page->n_runs; i++)
		if (!isnan(line->figures[i].value) && line->figures[i].value != 0)
			return;
	free(line->figures);
	table->n_lines--;
}

/* ---- change chart ---- */

enum { PLOT_MARGIN = 8, PLOT_ROW = 11, PLOT_CLIP = 100 };

struct scale { // percent
	double low, high, step;
	int width; // width of the chart, CSS pixels
};

static double scale_percent(const struct scale *scale, double percent)
{
	double inside = fmin(fmax(percent, scale->low), scale->high);
	return PLOT_MARGIN + (inside - scale->low) / (scale->high - scale->low) * (scale->width - 2 * PLOT_MARGIN);
}

static void widen(struct scale *scale, double percent)
{
	if (!isfinite(percent))
		return;
	scale->low = fmin(scale->low, fmax(percent, -PLOT_CLIP));
	scale->high = fmax(scale->high, fmin(percent, PLOT_CLIP));
}

// One scale for all lines of a table. Changes beyond ±100 % are drawn as arrows at the edge.
static struct scale scale_of(const struct compare_page *page, const struct compare_table *table)
{
	static const double steps[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50};
	struct scale scale = {-0.5, 0.5, 100, page->n_runs == 2 ? 440 : page->n_runs == 3 ? 320 : 220};
	for (size_t l = 0; l < table->n_lines; l++)
		for (size_t i = 1; i < page->n_runs; i++) {
			struct compare_change change = compare_change(table->lines[l].figures[0],
				table->lines[l].figures[i]);
			double error = isnan(change.error_percent) ? 0 : change.error_percent;
			widen(&scale, change.percent - error);
			widen(&scale, change.percent + error);
		}
	for (size_t i = ARRAY_SIZE(steps); i-- > 0;)
		if ((scale.high - scale.low) / steps[i] <= 5)
			scale.step = steps[i];
	scale.low = floor(scale.low / scale.step) * scale.step;
	scale.high = ceil(scale.high / scale.step) * scale.step;
	return scale;
}

static void svg_begin(struct buf *out, const struct scale *scale, double height)
{
	buf_printf(out, "<svg class=\"change\" aria-hidden=\"true\" viewBox=\"0 0 %d ", scale->width);
	buf_fixed(out, height, 0);
	buf_printf(out, "\" width=\"%d\" height=\"", scale->width);
	buf_fixed(out, height, 0);
	buf_str(out, "\">");
}

static void svg_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2)
{
	buf_printf(out, "<path class=\"%s\" d=\"M", class);
	buf_fixed(out, x1, 1);
	buf_char(out, ' ');
	buf_fixed(out, y1, 1);
	buf_char(out, 'L');
	buf_fixed(out, x2, 1);
	buf_char(out, ' ');
	buf_fixed(out, y2, 1);
	buf_str(out, "\"/>");
}

// Labels of the scale, in the column header.
static void plot_head(const struct compare_page *page, const struct scale *scale)
{
	struct buf *out = page->out;
	int decimals = scale->step < 1 ? 1 : 0;
	double ticks[] = {scale->low, 0, scale->high};
	svg_begin(out, scale, 14);
	for (size_t i = 0; i < ARRAY_SIZE(ticks); i++) {
		bool is_edge = i != 1;
		if (is_edge && fabs(scale_percent(scale, ticks[i]) - scale_percent(scale, 0)) < 36)
			continue;
		buf_printf(out, "<text class=\"c-faint\" text-anchor=\"%s\" y=\"11\" x=\"",
			!is_edge         ? "middle"
				: i == 0 ? "start"
					 : "end");
		buf_fixed(out, i == 0 ? 0 : i == 2 ? scale->width : scale_percent(scale, 0), 1);
		buf_str(out, "\">");
		if (is_edge)
			compare_signed_percent(out, ticks[i], decimals);
		else
			buf_char(out, '0');
		buf_str(out, "</text>");
	}
	buf_str(out, "</svg>");
}

static void arrow(struct buf *out, enum colour colour, double x, double y, int direction)
{
	buf_printf(out, "<path class=\"c-%s\" d=\"M", palette[colour].css);
	buf_fixed(out, x + 5 * direction, 1);
	buf_char(out, ' ');
	buf_fixed(out, y, 1);
	buf_printf(out, "l%d -4v8z\"/>", -7 * direction);
}

static void dot(struct buf *out, const struct scale *scale, const struct compare_change *change, size_t run, double y)
{
	enum colour colour = colour_of_series((unsigned int)run);
	char line_class[32];
	snprintf(line_class, sizeof(line_class), "s-%s", palette[colour].css);
	double x = scale_percent(scale, change->percent);
	if (!isnan(change->error_percent))
		svg_line(out, line_class, scale_percent(scale, change->percent - change->error_percent), y,
			scale_percent(scale, change->percent + change->error_percent), y);
	if (change->percent < scale->low || change->percent > scale->high) {
		arrow(out, colour, x, y, change->percent < 0 ? -1 : 1);
		return;
	}
	// A hollow circle means that the error is unknown.
	buf_printf(out, "<circle class=\"%c-%s\" r=\"3.5\" cx=\"", isnan(change->error_percent) ? 's' : 'c',
		palette[colour].css);
	buf_fixed(out, x, 1);
	buf_str(out, "\" cy=\"");
	buf_fixed(out, y, 1);
	buf_str(out, "\"/>");
}

static void plot(const struct compare_page *page, const struct compare_line *line, const struct scale *scale)
{
	struct buf *out = page->out;
	double height = PLOT_ROW * (double)(page->n_runs - 1) + 8;
	svg_begin(out, scale, height);
	for (double tick = scale->low; tick <= scale->high + scale->step / 2; tick += scale->step)
		svg_line(out, fabs(tick) < scale->step / 2 ? "s-faint" : "s-line", scale_percent(scale, tick), 0,
			scale_percent(scale, tick), height);
	for (size_t i = 1; i < page->n_runs; i++) {
		struct compare_change change = compare_change(line->figures[0], line->figures[i]);
		if (isfinite(change.percent))
			dot(out, scale, &change, i, 4 + PLOT_ROW * ((double)i - 0.5));
	}
	buf_str(out, "</svg>");
}

/* ---- cells ---- */

static void print_figure(struct buf *out, const struct compare_line *line, struct compare_figure figure)
{
	line->print(out, figure.value);
	if (isnan(figure.value) || isnan(figure.error))
		return;
	buf_str(out, " <span class=\"faint\">");
	if (line->print == human_energy) {
		human_error_of(out, figure.value, figure.error);
	} else {
		buf_str(out, "± ");
		line->print(out, figure.error);
		buf_str(out, unresolved_mark(figure.value, figure.error));
	}
	buf_str(out, "</span>");
}

static void print_change(struct buf *out, struct compare_change change)
{
	static const char *const classes[] = {[COMPARE_UNKNOWN] = "faint",
		[COMPARE_UNDECIDED] = "faint",
		[COMPARE_EQUAL] = "faint",
		[COMPARE_NO_CHANGE] = "faint",
		[COMPARE_LESS] = "less",
		[COMPARE_MORE] = "more"};
	if (change.verdict == COMPARE_UNKNOWN)
		return;
	buf_printf(out, "<span class=\"against %s\">", classes[change.verdict]);
	if (change.verdict == COMPARE_NO_CHANGE) {
		buf_str(out, "no difference seen");
	} else if (change.verdict == COMPARE_EQUAL) {
		buf_str(out, "equal");
	} else if (!isfinite(change.percent)) {
		buf_str(out, "first is 0");
	} else if (change.percent >= 100) {
		buf_str(out, "× ");
		human_number(out, 1 + change.percent / 100, 3);
	} else {
		compare_percent(out, change);
	}
	buf_str(out, "</span>");
}

static void cell(const struct compare_page *page, const struct compare_line *line, size_t run)
{
	struct buf *out = page->out;
	struct compare_figure figure = line->figures[run];
	buf_str(out, "<td data-value=\"");
	if (isfinite(figure.value))
		buf_double(out, figure.value);
	buf_str(out, "\">");
	if (isfinite(figure.value))
		print_figure(out, line, figure);
	else
		buf_str(out, "<span class=\"faint\">n/a</span>");
	if (run > 0)
		print_change(out, compare_change(line->figures[0], figure));
	buf_str(out, "</td>");
}

static void row(const struct compare_page *page, const struct compare_line *line, const struct scale *scale)
{
	struct buf *out = page->out;
	buf_str(out, "<tr><th scope=\"row\" class=\"name\">");
	if (line->is_name)
		part_name(out, line->title);
	else
		buf_str(out, line->title);
	buf_str(out, "</th>");
	for (size_t i = 0; i < page->n_runs; i++)
		cell(page, line, i);
	struct compare_change last = compare_change(line->figures[0], line->figures[page->n_runs - 1]);
	buf_str(out, "<td class=\"plot\" data-value=\"");
	if (isfinite(last.percent))
		buf_double(out, last.percent);
	buf_str(out, "\">");
	plot(page, line, scale);
	buf_str(out, "</td></tr>\n");
}

/* ---- the table ---- */

void compare_run_name(const struct compare_page *page, size_t run)
{
	buf_printf(page->out, "<span class=\"swatch c-%s\"></span>", palette[colour_of_series((unsigned int)run)].css);
	part_name(page->out, page->runs[run].name);
}

static void head(const struct compare_page *page, const struct compare_table *table, const struct scale *scale)
{
	struct buf *out = page->out;
	buf_printf(out, "<div class=\"wide\"><table id=\"%s\" class=\"sortable side\">", table->id);
	if (table->caption != NULL)
		buf_printf(out, "<caption>%s</caption>", table->caption);
	buf_printf(out, "\n<thead><tr><th scope=\"col\" class=\"name\">%s</th>", table->head);
	for (size_t i = 0; i < page->n_runs; i++) {
		buf_str(out, "<th scope=\"col\">");
		compare_run_name(page, i);
		buf_str(out, "</th>");
	}
	buf_str(out, "<th scope=\"col\" class=\"plot\"><span class=\"aside\">Change from ");
	part_name(out, page->runs[0].name);
	buf_str(out, "</span>");
	plot_head(page, scale);
	buf_str(out, "</th></tr></thead>\n<tbody>\n");
}

static void release(struct compare_table *table)
{
	for (size_t i = 0; i < table->n_lines; i++)
		free(table->lines[i].figures);
	free(table->lines);
	*table = (struct compare_table){0};
}

void compare_table_write(const struct compare_page *page, struct compare_table *table)
{
	if (table->failed)
		page->out->failed = -ENOMEM;
	if (!table->failed && table->n_lines > 0) {
		struct scale scale = scale_of(page, table);
		head(page, table, &scale);
		for (size_t i = 0; i < table->n_lines; i++)
			row(page, &table->lines[i], &scale);
		buf_str(page->out, "</tbody></table></div>\n");
	}
	release(table);
}
