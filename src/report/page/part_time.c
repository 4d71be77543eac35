/* Along its time: charts and lanes, drawn by the script from one block of JSON, and as still pictures for paper and for browsers
 * without script. */
#include "report/page/part.h"

#include "base/util.h"
#include "report/picture/charts_json.h"
#include "report/page/page.h"
#include "report/picture/picture.h"

#include <stdio.h>

enum { JSON_CEILING = 1 << 28 };

static void stills(const struct part *part)
{
	static const struct {
		enum picture_kind kind;
		const char *class;
		double width, height;
	} stills[] = {{PICTURE_POWER, "whole", 1040, 270}, {PICTURE_CPU, "half", 512, 150},
		{PICTURE_MEMORY, "half", 512, 150}, {PICTURE_GPU_UTILIZATION, "half", 512, 150},
		{PICTURE_GPU_MEMORY, "half", 512, 150}, {PICTURE_TEMPERATURE, "half", 512, 150},
		{PICTURE_CLOCK, "half", 512, 150}, {PICTURE_SPANS, "whole", 1040, 0}};
	buf_str(part->out, "<div class=\"still\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(stills); i++) {
		if (!picture_has(part->charts, stills[i].kind))
			continue;
		char prefix[32];
		snprintf(prefix, sizeof(prefix), "still-%zu-", i);
		const struct picture_look look = {stills[i].width, stills[i].height, false, prefix};
		buf_printf(part->out, "<div class=\"%s\">", stills[i].class);
		picture_svg(part->charts, stills[i].kind, &look, part->out);
		buf_str(part->out, "</div>\n");
	}
	buf_str(part->out, "</div>\n");
}

void section_time(const struct part *part)
{
	if (!part_has_time(part)) {
		buf_str(part->out, "<section>\n");
		part_title(part, "time", "Over time");
		buf_str(part->out, "<p class=\"faint\">Nothing was read often enough to be drawn.</p>\n</section>\n");
		return;
	}
	buf_str(part->out, "<section>\n");
	part_title(part, "time", "Over time");
	buf_str(part->out, "<div id=\"view\" class=\"live\"></div>\n");
	stills(part);
	struct buf json;
	buf_init(&json, JSON_CEILING);
	charts_json(part->charts, &json);
	if (json.failed == 0)
		page_json(part->out, "charts", json.data, json.size);
	else
		part->out->failed = json.failed;
	buf_finish(&json);
	buf_str(part->out, "</section>\n");
}
