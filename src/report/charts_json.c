#include "report/charts_json.h"

#include "base/jsonw.h"
#include "base/util.h"
#include "report/palette.h"
#include "report/picture/picture.h"

enum { DIGITS = 5 };

static const char *const looks[] = {[CHART_STACKED] = "stacked", [CHART_LINES] = "lines"};
static const char *const lines[] = {
	[CHART_PART] = "part",
	[CHART_WHOLE] = "whole",
	[CHART_TARGET] = "target",
	[CHART_BESIDE] = "beside",
	[CHART_LIMIT] = "limit",
	[CHART_MEAN] = "mean",
};

/* ---- numbers ---- */

// Instants on the axis are exact to a microsecond, and to nine digits where that is more.
static void instant(struct jsonw *j, double at_s)
{
	jsonw_rounded(j, at_s, at_s < 1e4 ? 9 : 11);
}

static void key_instant(struct jsonw *j, const char *key, double at_s)
{
	jsonw_key(j, key);
	instant(j, at_s);
}

static void key_number(struct jsonw *j, const char *key, double value)
{
	jsonw_key(j, key);
	jsonw_rounded(j, value, DIGITS);
}

static void numbers(struct jsonw *j, const char *key, const double *values, size_t n)
{
	jsonw_key(j, key);
	jsonw_begin_array(j);
	for (size_t i = 0; i < n; i++)
		jsonw_rounded(j, values[i], DIGITS);
	jsonw_end_array(j);
}

static void instants(struct jsonw *j, const char *key, const double *values, size_t n)
{
	jsonw_key(j, key);
	jsonw_begin_array(j);
	for (size_t i = 0; i < n; i++)
		instant(j, values[i]);
	jsonw_end_array(j);
}

/* ---- parts ---- */

static void axis(struct jsonw *j, const struct chart_axis *axis)
{
	jsonw_key(j, "axis");
	jsonw_begin_object(j);
	key_instant(j, "length_s", axis->length_s);
	instants(j, "from_s", axis->from_s, axis->n);
	instants(j, "to_s", axis->to_s, axis->n);
	jsonw_key(j, "segments");
	jsonw_begin_array(j);
	for (size_t s = 0; s < axis->n_segments; s++) {
		const struct chart_segment *segment = &axis->segments[s];
		jsonw_begin_object(j);
		key_instant(j, "from_s", segment->from_s);
		key_instant(j, "to_s", segment->to_s);
		jsonw_key_i64(j, "start_ns", segment->start_ns);
		jsonw_key_i64(j, "wall_start_ns", segment->wall_start_ns);
		jsonw_key_double(j, "pause_s", segment->pause_s);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
	jsonw_key(j, "sleeps");
	jsonw_begin_array(j);
	for (size_t i = 0; i < axis->n_sleeps; i++) {
		jsonw_begin_object(j);
		key_instant(j, "at_s", axis->sleeps[i].at_s);
		key_instant(j, "slept_s", axis->sleeps[i].slept_s);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
	jsonw_end_object(j);
}

static bool is_same(const double *a, const double *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])))
			return false;
	return true;
}

// Of a device that in all pictures; others have theirs by what they are, which whoever draws them knows.
static const char *colour_of(const struct charts *charts, const struct chart_series *s)
{
	return s->device != NULL ? palette[colour_of_device(charts->findings, s->device)].css : NULL;
}

// Extremes that are the means tell nothing: half of the document, for runs that are not decimated.
static void series(struct jsonw *j, const struct charts *charts, const struct chart_series *s)
{
	size_t n = charts->axis.n;
	jsonw_begin_object(j);
	jsonw_key_string(j, "name", s->name);
	jsonw_key_string(j, "label", s->label);
	jsonw_key_string(j, "line", lines[s->line]);
	jsonw_key_string(j, "provenance", provenance_name(s->provenance));
	jsonw_key_string(j, "device", s->device != NULL ? s->device->name : NULL);
	jsonw_key_string(j, "colour", colour_of(charts, s));
	key_number(j, "highest", s->highest);
	key_number(j, "lowest", s->lowest);
	numbers(j, "mean", s->mean, n);
	if (!is_same(s->mean, s->low, n))
		numbers(j, "low", s->low, n);
	if (!is_same(s->mean, s->high, n))
		numbers(j, "high", s->high, n);
	jsonw_end_object(j);
}

static void charts_part(struct jsonw *j, const struct charts *charts)
{
	jsonw_key(j, "charts");
	jsonw_begin_array(j);
	for (size_t i = 0; i < charts->n_charts; i++) {
		const struct chart *chart = &charts->charts[i];
		jsonw_begin_object(j);
		jsonw_key_string(j, "id", chart->id);
		jsonw_key_string(j, "title", chart->title);
		jsonw_key_string(j, "unit", chart->unit);
		jsonw_key_string(j, "look", looks[chart->look]);
		jsonw_key_double(j, "ceiling", chart->ceiling);
		jsonw_key(j, "series");
		jsonw_begin_array(j);
		for (size_t k = 0; k < chart->n_series; k++)
			series(j, charts, &chart->series[k]);
		jsonw_end_array(j);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

static void bands(struct jsonw *j, const struct charts *charts)
{
	jsonw_key(j, "bands");
	jsonw_begin_array(j);
	for (size_t i = 0; i < charts->n_bands; i++) {
		const struct chart_band *band = &charts->bands[i];
		jsonw_begin_object(j);
		key_instant(j, "from_s", band->from_s);
		key_instant(j, "to_s", band->to_s);
		key_instant(j, "covered_s", band->covered_s);
		jsonw_key_string(j, "device", band->device != NULL ? band->device->name : NULL);
		jsonw_key_string(j, "kind", band->kind);
		jsonw_key_string(j, "text", band->text);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

static void marks(struct jsonw *j, const struct charts *charts)
{
	jsonw_key(j, "marks");
	jsonw_begin_array(j);
	for (size_t i = 0; i < charts->n_marks; i++) {
		const struct chart_mark *mark = &charts->marks[i];
		jsonw_begin_object(j);
		key_instant(j, "at_s", mark->at_s);
		jsonw_key_i64(j, "t_ns", mark->t_ns);
		jsonw_key_string(j, "kind", mark->kind);
		jsonw_key_string(j, "text", mark->text);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

// A row of numbers, as docs/charts.md has them: a hundred thousand objects with keys would be most of a page.
static void item(struct jsonw *j, const struct charts *charts, const struct chart_item *item)
{
	const struct run *run = charts->findings->run;
	jsonw_begin_array(j);
	instant(j, item->from_s);
	instant(j, item->to_s);
	if (item->block != UINT32_MAX)
		jsonw_i64(j, item->block);
	else
		jsonw_null(j);
	jsonw_i64(j, item->count);
	jsonw_rounded(j, item->energy_j, DIGITS);
	if (item->span != SIZE_MAX)
		jsonw_i64(j, run->spans[item->span].id);
	else
		jsonw_null(j);
	jsonw_i64(j, item->is_open);
	jsonw_end_array(j);
}

static void lanes(struct jsonw *j, const struct charts *charts)
{
	jsonw_key(j, "blocks");
	jsonw_begin_array(j);
	for (size_t i = 0; i < charts->findings->n_blocks && charts->n_lanes > 0; i++)
		jsonw_string(j, charts->findings->blocks[i].name);
	jsonw_end_array(j);
	jsonw_key(j, "block_colours");
	jsonw_begin_array(j);
	for (size_t i = 0; i < charts->findings->n_blocks && charts->n_lanes > 0; i++)
		jsonw_string(j, palette[colour_of_block(charts, (uint32_t)i)].css);
	jsonw_end_array(j);
	jsonw_key_i64(j, "n_spans", (int64_t)charts->n_spans);
	jsonw_key(j, "lanes");
	jsonw_begin_array(j);
	for (size_t k = 0; k < charts->n_lanes; k++) {
		const struct chart_lane *lane = &charts->lanes[k];
		jsonw_begin_object(j);
		jsonw_key_i64(j, "pid", lane->pid);
		jsonw_key_i64(j, "tid", lane->tid != 0 ? lane->tid : VALUE_MISSING);
		jsonw_key_i64(j, "depth", lane->depth);
		jsonw_key_string(j, "process", lane->process);
		if (lane->title != NULL)
			jsonw_key_string(j, "heading", lane->title);
		if (lane->label != NULL)
			jsonw_key_string(j, "label", lane->label);
		jsonw_key_bool(j, "is_range", lane->is_range);
		jsonw_key_i64(j, "n_spans", (int64_t)lane->n_spans);
		jsonw_key(j, "items");
		jsonw_begin_array(j);
		for (size_t i = 0; i < lane->n_items; i++)
			item(j, charts, &lane->items[i]);
		jsonw_end_array(j);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

static void colour(struct jsonw *j, const char *key, uint32_t rgb)
{
	char text[8] = "#000000";
	for (int i = 6; i > 0; i--, rgb >>= 4)
		text[i] = "0123456789abcdef"[rgb & 15];
	jsonw_key_string(j, key, text);
}

static void colours(struct jsonw *j)
{
	jsonw_key(j, "palette");
	jsonw_begin_object(j);
	for (size_t i = 0; i < COLOURS; i++) {
		jsonw_key(j, palette[i].css);
		jsonw_begin_object(j);
		colour(j, "light", palette[i].light);
		colour(j, "dark", palette[i].dark);
		jsonw_end_object(j);
	}
	jsonw_end_object(j);
}

void charts_json(const struct charts *charts, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_object(&j);
	jsonw_key_string(&j, "schema", "wattle-charts/1");
	colours(&j);
	axis(&j, &charts->axis);
	charts_part(&j, charts);
	bands(&j, charts);
	marks(&j, charts);
	lanes(&j, charts);
	jsonw_end_object(&j);
}
