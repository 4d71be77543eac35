/* Over time: power of the nodes, stacked, and a lane a rank. The script draws them; paper and browsers without one get still pictures. */
#include "report/page/job.h"

#include "base/util.h"
#include "report/picture/charts_json.h"
#include "report/page/page.h"
#include "report/picture/picture.h"

enum { JSON_CEILING = 1 << 28 };

static void still(const struct job_page *page, enum picture_kind kind, double height, const char *prefix)
{
	const struct picture_look look = {1040, height, false, prefix};
	if (!picture_has(&page->time->charts, kind))
		return;
	buf_str(page->part.out, "<div class=\"whole\">");
	picture_svg(&page->time->charts, kind, &look, page->part.out);
	buf_str(page->part.out, "</div>\n");
}

void job_time(const struct job_page *page)
{
	struct buf *out = page->part.out;
	const struct charts *charts = &page->time->charts;
	if (charts->n_charts == 0 && charts->n_lanes == 0)
		return;
	buf_str(out, "<section>\n");
	part_title(&page->part, "time", "Over time");
	buf_str(out,
		"<p class=\"faint small\">By the hosts' own clocks, from the job's start. A lane shows the innermost code block of a "
		"rank.</p>\n<div id=\"view\" class=\"live\"></div>\n<div class=\"still\">\n");
	still(page, PICTURE_POWER, 250, "still-power-");
	still(page, PICTURE_SPANS, 0, "still-spans-");
	buf_str(out, "</div>\n");
	if (page->time->lanes_left_out > 0)
		buf_printf(out, "<p class=\"faint small\">%zu more ranks have no lane here.</p>\n",
			page->time->lanes_left_out);
	struct buf json;
	buf_init(&json, JSON_CEILING);
	charts_json(charts, &json);
	if (json.failed == 0)
		page_json(out, "charts", json.data, json.size);
	else
		out->failed = json.failed;
	buf_finish(&json);
	buf_str(out, "</section>\n");
}
