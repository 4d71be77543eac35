/* Heat map of power over time, one row per node, darker for more power. For jobs with more nodes than a stacked chart has
 * colours. */
#include "report/section/sections.h"

#include "base/util.h"
#include "report/picture/internal.h"
#include "report/report.h"

enum { WIDTH = 1040, LEFT = 130, RIGHT = 10, ROW = 14, ROWS_MAX = 512, LEVELS = 10 };

static int level_of(const struct part *part, size_t node, size_t column)
{
	double w = part->time->node_w[node * part->time->n_columns + column];
	if (isnan(w))
		return -1;
	int level = (int)(w / part->time->highest_w * LEVELS);
	return level < 0 ? 0 : level >= LEVELS ? LEVELS - 1 : level;
}

// Draws all boxes of one level as a single path, because there may be one per pixel.
static void draw_level(const struct part *part, size_t n_rows, int level)
{
	struct buf *out = part->out;
	size_t n = part->time->n_columns;
	double column_width = (double)(WIDTH - LEFT - RIGHT) / (double)n;
	bool any = false;
	for (size_t row = 0; row < n_rows; row++)
		for (size_t from = 0, to; from < n; from = to) {
			to = from + 1;
			if (level_of(part, row, from) != level)
				continue;
			while (to < n && level_of(part, row, to) == level)
				to++;
			if (!any)
				buf_printf(out, "<path class=\"heat-%d\" d=\"", level);
			any = true;
			buf_char(out, 'M');
			buf_fixed(out, LEFT + (double)from * column_width, 1);
			buf_printf(out, " %zuh", row * ROW);
			buf_fixed(out, (double)(to - from) * column_width, 1);
			buf_printf(out, "v%dh-", ROW - 1);
			buf_fixed(out, (double)(to - from) * column_width, 1);
			buf_char(out, 'z');
		}
	if (any)
		buf_str(out, "\"/>\n");
}

static void draw_label(const struct part *part, size_t row)
{
	const char *name = part->job->nodes[row].name;
	buf_printf(part->out, "<text class=\"c-faint\" x=\"%d\" y=\"%zu\" text-anchor=\"end\">", LEFT - 8,
		row * ROW + ROW - 3);
	draw_name(part->out, name != NULL ? name : "a node", LEFT - 16);
	buf_str(part->out, "</text>\n");
}

// Legend of the levels, from 0 to the maximum.
static void legend(const struct part *part)
{
	struct buf *out = part->out;
	buf_str(out,
		"<p class=\"small faint heat-legend\">0 W <svg aria-hidden=\"true\" viewBox=\"0 0 100 10\" width=\"100\" height=\"10\">");
	for (int level = 0; level < LEVELS; level++)
		buf_printf(out, "<path class=\"heat-%d\" d=\"M%d 0h10v10h-10z\"/>", level, level * 10);
	buf_str(out, "</svg> ");
	human_power(out, part->time->highest_w);
	buf_str(out, "; blank: unknown</p>\n");
}

void section_heat(const struct part *part)
{
	struct buf *out = part->out;
	size_t n = part->job->n_nodes < ROWS_MAX ? part->job->n_nodes : ROWS_MAX;
	if (part->job->n_nodes < 2 || !(part->time->highest_w > 0))
		return;
	section_begin(part, "heat", "Power of each node");
	buf_printf(out,
		"<div class=\"wide\"><svg class=\"heat\" role=\"img\" viewBox=\"0 0 %d %zu\"><title>Power of each node over time</title>\n",
		WIDTH, n * ROW);
	for (int level = 0; level < LEVELS; level++)
		draw_level(part, n, level);
	for (size_t row = 0; row < n; row++)
		draw_label(part, row);
	buf_str(out, "</svg></div>\n");
	legend(part);
	if (n < part->job->n_nodes)
		html_section_notef(part, "… and %zu more nodes.", part->job->n_nodes - n);
	section_end(part);
}
