/* Charts over time (power and others) of each run on one axis, aligned at their starts. The script draws them; printed
 * pages and browsers without scripts get static pictures. */
#include "report/page/compare.h"

#include "analysis/chart/merge_runs.h"
#include "base/util.h"
#include "report/picture/charts_json.h"
#include "report/picture/picture.h"
#include "report/section/sections.h"

#include <errno.h>

static void static_picture(const struct compare_page *page, const struct charts *charts)
{
	const struct picture_style look = {.id_prefix = "p-"};
	if (!picture_has(charts, PICTURE_POWER))
		return;
	buf_str(page->out, "<div class=\"still picture\">\n");
	picture_svg(charts, PICTURE_POWER, &look, page->out);
	buf_str(page->out, "</div>\n");
}

static void write_charts(const struct compare_page *page, const struct charts *charts)
{
	if (charts->n_charts == 0)
		return;
	buf_str(page->out,
		"<h2 id=\"time\">Over time</h2>\n<p class=\"faint small\">Each from its own start; pauses between "
		"segments are left out.</p>\n<div id=\"view\" class=\"live\"></div>\n");
	static_picture(page, charts);
	page_charts(page->out, charts);
}

void compare_power(const struct compare_page *page)
{
	struct charts charts;
	struct chart_member *members = calloc_array(page->n_runs, sizeof(*members));
	for (size_t i = 0; members != NULL && i < page->n_runs; i++)
		members[i] = (struct chart_member){page->runs[i].name, page->runs[i].charts};
	if (members == NULL || charts_merge_runs(members, page->n_runs, &charts) < 0) {
		page->out->failed = -ENOMEM;
	} else {
		write_charts(page, &charts);
		charts_finish(&charts);
	}
	free(members);
}
