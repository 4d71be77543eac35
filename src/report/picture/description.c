// Text description of a chart.
#include "report/picture/internal.h"

#include "base/util.h"

struct summary {
	double mean, known_s, highest_at_s;
};

static struct summary summarize(const struct charts *charts, const struct chart_series *s)
{
	const struct chart_axis *axis = &charts->axis;
	struct summary summary = {0};
	for (size_t i = 0; i < axis->n; i++) {
		if (isnan(s->mean[i]))
			continue;
		double length_s = axis->to_s[i] - axis->from_s[i];
		summary.mean += s->mean[i] * length_s;
		if (s->high[i] == s->highest && summary.highest_at_s == 0)
			summary.highest_at_s = axis->from_s[i];
		summary.known_s += length_s;
	}
	summary.mean = summary.known_s > 0 ? summary.mean / summary.known_s : (double)NAN;
	return summary;
}

static void series_description(struct buf *out, const struct charts *charts, const struct chart *chart,
	const struct chart_series *s)
{
	struct summary summary = summarize(charts, s);
	buf_char(out, ' ');
	draw_name(out, s->label, 0);
	if (s->line != CHART_LIMIT && s->provenance != PROVENANCE_MEASURED)
		buf_printf(out, " (%s)", provenance_name(s->provenance));
	buf_str(out, ": mean ");
	value_text(out, chart->unit, summary.mean);
	buf_str(out, ", highest ");
	value_text(out, chart->unit, s->highest);
	buf_str(out, " after ");
	time_text(out, summary.highest_at_s);
	double missing_s = charts->axis.length_s - summary.known_s;
	if (missing_s > 0.001 * charts->axis.length_s && chart->unit[0] != '\0') {
		buf_str(out, ", unknown for ");
		time_text(out, missing_s);
	}
	buf_char(out, '.');
}

static void bands_description(struct buf *out, const struct charts *charts, const struct chart *chart)
{
	double throttled_s = 0, gap_s = 0;
	for (size_t i = 0; i < charts->n_bands; i++) {
		const struct chart_band *band = &charts->bands[i];
		bool is_here = band->device == NULL;
		for (size_t k = 0; k < chart->n_series && !is_here; k++)
			is_here = chart->series[k].device == band->device;
		if (is_here && strcmp(band->kind, "throttle") == 0)
			throttled_s += band->covered_s;
		else if (is_here)
			gap_s += band->covered_s;
	}
	if (throttled_s > 0) {
		buf_str(out, " Clocks were throttled for ");
		time_text(out, throttled_s);
		buf_char(out, '.');
	}
	if (gap_s > 0) {
		buf_str(out, " Not read for ");
		time_text(out, gap_s);
		buf_char(out, '.');
	}
}

void chart_description(struct buf *out, const struct charts *charts, const struct chart *chart)
{
	enum { TOLD_MAX = 24 };
	draw_name(out, chart->title, 0);
	buf_str(out, " over ");
	time_text(out, charts->axis.length_s);
	if (charts->axis.n_segments > 1)
		buf_printf(out, " in %zu segments", charts->axis.n_segments);
	buf_char(out, '.');
	for (size_t i = 0; i < chart->n_series && i < TOLD_MAX; i++)
		series_description(out, charts, chart, &chart->series[i]);
	bands_description(out, charts, chart);
}
