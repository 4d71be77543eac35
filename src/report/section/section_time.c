/* Charts and lanes over time, and the flame graph. The script draws the charts; printed pages and browsers without scripts
 * get static pictures. */
#include "report/section/sections.h"

#include "base/util.h"
#include "report/html.h"
#include "report/picture/charts_json.h"
#include "report/picture/picture.h"

#include <stdio.h>

enum { JSON_CEILING = 1 << 28 };

static const struct static_view {
	enum picture_kind kind;
	const char *class;
	double width, height;
} static_views[] = {{PICTURE_POWER, "whole", 1040, 240}, {PICTURE_CPU, "half", 512, 150},
	{PICTURE_MEMORY, "half", 512, 150}, {PICTURE_GPU_UTILIZATION, "half", 512, 150},
	{PICTURE_GPU_MEMORY, "half", 512, 150}, {PICTURE_TEMPERATURE, "half", 512, 150},
	{PICTURE_CLOCK, "half", 512, 150}, {PICTURE_SPANS, "whole", 1040, 0}};

static void write_static_views(const struct part *part)
{
	buf_str(part->out, "<div class=\"still\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(static_views); i++) {
		if (!picture_has(part->charts, static_views[i].kind))
			continue;
		char prefix[32];
		snprintf(prefix, sizeof(prefix), "still-%zu-", i);
		const struct picture_style look = {static_views[i].width, static_views[i].height, false, prefix};
		buf_printf(part->out, "<div class=\"%s\">", static_views[i].class);
		picture_svg(part->charts, static_views[i].kind, &look, part->out);
		buf_str(part->out, "</div>\n");
	}
	buf_str(part->out, "</div>\n");
}

static bool has_time(const struct charts *charts)
{
	return charts->axis.n > 0 && (charts->n_charts > 0 || charts->n_items > 0 || charts->n_lanes > 0);
}

void page_charts(struct buf *out, const struct charts *charts)
{
	struct buf json;
	buf_init(&json, JSON_CEILING);
	charts_json(charts, &json);
	if (json.failed == 0)
		html_json(out, "charts", json.data, json.size);
	else
		out->failed = json.failed;
	buf_finish(&json);
}

void section_time(const struct part *part)
{
	section_begin(part, "time", "Over time");
	if (part->job != NULL)
		html_section_note(part,
			"Times are relative to the job's start, by each host's own clock. A lane shows the innermost code block of a rank.");
	if (has_time(part->charts)) {
		buf_str(part->out, "<div id=\"view\" class=\"live\"></div>\n");
		write_static_views(part);
		page_charts(part->out, part->charts);
	} else {
		buf_str(part->out, "<p class=\"faint\">Too few samples for a chart.</p>\n");
	}
	if (part->time != NULL && part->time->lanes_left_out > 0)
		html_section_notef(part, "%zu more ranks are not shown.", part->time->lanes_left_out);
	section_end(part);
}

void section_flame(const struct part *part)
{
	const struct picture_style look = {.width = 1240, .id_prefix = "flame-"};
	if (!picture_has(part->charts, PICTURE_FLAME))
		return;
	section_begin(part, "flame", "Energy by call");
	buf_str(part->out, "<div class=\"picture\">");
	picture_svg(part->charts, PICTURE_FLAME, &look, part->out);
	buf_str(part->out, "</div>\n");
	html_section_note(part,
		"Each bar is a block nested in the block above it. Its width is the program's energy while "
		"it ran, including nested blocks.");
	section_end(part);
}
