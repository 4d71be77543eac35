#include "report/picture/charts_json.h"

#include "base/fields.h"
#include "base/util.h"
#include "report/palette.h"
#include "report/picture/picture.h"

enum { DIGITS = 5 };

// clang-format off

static const struct charts *charts_of(const struct object_at *at)
{
	return object_document(at);
}

// ROUNDED: rounded numbers; INSTANT: times on the axis, exact to 1 us.
#define ROUNDED(struct_, member_, unit_, meaning_) FIELD(struct_, member_, unit_, meaning_, .digits = DIGITS)
#define INSTANT(struct_, member_, meaning_) FIELD(struct_, member_, "s", meaning_, .digits = FIELD_DIGITS_OF_INSTANT)

/* ---- columns: one value per bucket, from the array at the offset ---- */

static size_t bucket_count(const struct object_at *at)
{
	return charts_of(at)->axis.n;
}

static const double *column(const struct object_at *at)
{
	return *(const double *const *)(const void *)((const char *)at->data + at->field->offset);
}

static double bucket(const struct object_at *at)
{
	return column(at->outer)[at->index];
}

static const struct field number_field = FIELD_NUMBER("value", bucket, NULL, "value of a bucket", .digits = DIGITS);
static const struct field instant_field = FIELD_NUMBER("instant", bucket, "s", "an instant", .digits = FIELD_DIGITS_OF_INSTANT);
#define COLUMN(struct_, member_, value_, meaning_, ...)                                                                \
	FIELD_VALUES(#member_, value_, bucket_count, meaning_, .offset = offsetof(struct_, member_), ##__VA_ARGS__)

/* ---- axis ---- */

#define S struct chart_segment
static const struct field segment_fields[] = {
	INSTANT(S, from_s, "begin on the axis"),
	INSTANT(S, to_s, "end on the axis"),
	FIELD(S, start_ns, "ns", "CLOCK_MONOTONIC at from_s"),
	FIELD(S, wall_start_ns, "ns", "Unix time at from_s"),
	FIELD(S, pause_s, "s", "wall-clock time since the previous segment"),
};
#undef S
static const struct object_type segment_type = OBJECT_TYPE("segment", "A recording.", segment_fields);

static const struct field sleep_fields[] = {
	INSTANT(struct chart_sleep, at_s, "position on the axis"),
	INSTANT(struct chart_sleep, slept_s, "duration of the suspension"),
};
static const struct object_type sleep_type = OBJECT_TYPE("sleep", "A suspension of the machine.", sleep_fields);

#define A struct chart_axis
static const struct field axis_fields[] = {
	INSTANT(A, length_s, "measured time"),
	COLUMN(A, from_s, &instant_field, "begin of each bucket"),
	COLUMN(A, to_s, &instant_field, "end of each bucket"),
	FIELD_ITEMS(A, "segments", segments, n_segments, &segment_type, "the recordings"),
	FIELD_ITEMS(A, "sleeps", sleeps, n_sleeps, &sleep_type, "suspensions of the machine"),
};
#undef A
static const struct object_type axis_type = OBJECT_TYPE("axis", "Measured time, in buckets.", axis_fields);

/* ---- charts ---- */

static const struct chart_series *series_of(const struct object_at *at)
{
	return at->data;
}

// A device has the same colour in all pictures. Other series are coloured by kind when drawn.
static const char *series_colour(const struct object_at *at, struct buf *scratch)
{
	const struct run_device *device = series_of(at)->device;
	return device != NULL ? palette[colour_of_device(charts_of(at)->findings, device)].css : NULL;
}

// Omits extremes that equal the means, which halves the document for runs without decimation.
static bool differs(const struct object_at *at)
{
	const double *a = series_of(at)->mean, *b = column(at);
	for (size_t i = 0; i < bucket_count(at); i++)
		if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])))
			return true;
	return false;
}

static const char *const lines[] = {
	[CHART_PART] = "part",
	[CHART_WHOLE] = "whole",
	[CHART_TARGET] = "target",
	[CHART_BESIDE] = "beside",
	[CHART_LIMIT] = "limit",
	[CHART_MEAN] = "mean",
	NULL,
};

#define S struct chart_series
static const struct field series_fields[] = {
	FIELD(S, name, NULL, "name, unique in the chart"),
	FIELD(S, label, NULL, "label of the series"),
	FIELD(S, line, NULL, "drawn as a line or as an area", .one_of = lines),
	FIELD(S, provenance, NULL, "provenance of the values", .one_of = provenance_names),
	FIELD_BY(S, device, "device", struct run_device, name, NULL, "the domain"),
	FIELD_TEXT("colour", series_colour, NULL, "color of the series, in the palette"),
	ROUNDED(S, highest, NULL, "largest value"),
	ROUNDED(S, lowest, NULL, "smallest value"),
	COLUMN(S, mean, &number_field, "mean of each bucket"),
	COLUMN(S, low, &number_field, "smallest value in each bucket; absent: the means", .present = differs),
	COLUMN(S, high, &number_field, "largest value in each bucket; absent: the means", .present = differs),
};
#undef S
static const struct object_type series_type = OBJECT_TYPE("series", "A series of a chart.", series_fields);

static const char *const styles[] = {[CHART_STACKED] = "stacked", [CHART_LINES] = "lines", NULL};

#define C struct chart
static const struct field chart_fields[] = {
	FIELD(C, id, NULL, "id of the chart"),
	FIELD(C, title, NULL, "title of the chart"),
	FIELD(C, unit, NULL, "unit of its values"),
	FIELD(C, style, NULL, "stacked areas, or lines", .one_of = styles, .old_key = "look"),
	FIELD(C, ceiling, NULL, "upper bound of the values"),
	FIELD_ITEMS(C, "series", series, n_series, &series_type, "series of the chart"),
};
#undef C
static const struct object_type chart_type = OBJECT_TYPE("chart", "A chart.", chart_fields);

/* ---- bands and marks ---- */

#define B struct chart_band
static const struct field band_fields[] = {
	INSTANT(B, from_s, "begin on the axis"),
	INSTANT(B, to_s, "end on the axis"),
	INSTANT(B, covered_s, "duration of the state within it"),
	FIELD_BY(B, device, "device", struct run_device, name, NULL, "the domain; null: the run"),
	FIELD(B, kind, NULL, "throttle or gap"),
	FIELD(B, text, NULL, "the state"),
};
#undef B
static const struct object_type band_type = OBJECT_TYPE("band", "An interval with a state: throttled clocks or a gap.", band_fields);

#define M struct chart_mark
static const struct field mark_fields[] = {
	INSTANT(M, at_s, "position on the axis"),
	FIELD(M, t_ns, "ns", "time of the event, CLOCK_MONOTONIC"),
	FIELD(M, kind, NULL, "kind of the event"),
	FIELD(M, text, NULL, "description of the event"),
};
#undef M
static const struct object_type mark_type = OBJECT_TYPE("mark", "An event of the run.", mark_fields);

/* ---- lanes ---- */

// An item is an array of numbers (docs/charts.md): a hundred thousand objects with keys would dominate the page size.
enum {ITEM_FROM, ITEM_TO, ITEM_BLOCK, ITEM_COUNT, ITEM_ENERGY, ITEM_SPAN, ITEM_IS_OPEN, ITEM_VALUES};

static struct field_value item_number(double number, int digits)
{
	return (struct field_value){.type = FIELD_IS_NUMBER, .known = isfinite(number), .digits = digits, .number = number};
}

static struct field_value item_integer(bool is_known, int64_t integer)
{
	return (struct field_value){.type = FIELD_IS_INTEGER, .known = is_known, .integer = integer};
}

static struct field_value item_value(const struct object_at *at)
{
	const struct chart_lane *lane = at->data;
	const struct chart_item *item = &lane->items[at->outer->index];
	bool has_span = item->span != SIZE_MAX;
	switch (at->index) {
	case ITEM_FROM: return item_number(item->from_s, FIELD_DIGITS_OF_INSTANT);
	case ITEM_TO: return item_number(item->to_s, FIELD_DIGITS_OF_INSTANT);
	case ITEM_BLOCK: return item_integer(item->block != UINT32_MAX, item->block);
	case ITEM_COUNT: return item_integer(true, item->count);
	case ITEM_ENERGY: return item_number(item->energy_j, DIGITS);
	case ITEM_SPAN: return item_integer(has_span, has_span ? charts_of(at)->findings->run->spans[item->span].id : 0);
	default: return item_integer(true, item->is_open);
	}
}

static size_t item_values(const struct object_at *at)
{
	return ITEM_VALUES;
}

static size_t item_count(const struct object_at *at)
{
	return ((const struct chart_lane *)at->data)->n_items;
}

static bool has_title(const struct object_at *at)
{
	return ((const struct chart_lane *)at->data)->title != NULL;
}

static bool has_label(const struct object_at *at)
{
	return ((const struct chart_lane *)at->data)->label != NULL;
}

static bool is_no_thread(const struct object_at *at)
{
	return ((const struct chart_lane *)at->data)->tid == 0;
}

static const struct field item_field = FIELD_GETTER(FIELD_IS_ANY, any, "value", item_value, NULL, "a number");
static const struct field item_row = FIELD_VALUES("item", &item_field, item_values,
	"from_s, to_s, block, number of spans, energy_j, span, whether it never ended");

#define L struct chart_lane
static const struct field lane_fields[] = {
	FIELD(L, pid, NULL, "process id"),
	FIELD(L, tid, NULL, "thread id", .null_if = is_no_thread),
	FIELD(L, depth, NULL, "depth of nesting; 0: outermost"),
	FIELD(L, process, NULL, "name of the process"),
	FIELD_AS(L, "heading", title, NULL, "of a job: its node", .present = has_title),
	FIELD(L, label, NULL, "of a job: its rank", .present = has_label),
	FIELD(L, is_range, NULL, "ranges, which may overlap"),
	FIELD(L, n_spans, NULL, "number of spans that the items represent"),
	FIELD_VALUES("items", &item_row, item_count, "spans, ascending"),
};
#undef L
static const struct object_type lane_type = OBJECT_TYPE("lane", "Spans of one depth in a thread.", lane_fields);

static size_t block_count(const struct object_at *at)
{
	return charts_of(at)->n_lanes > 0 ? charts_of(at)->findings->n_blocks : 0;
}

static const char *block_name(const struct object_at *at, struct buf *scratch)
{
	return charts_of(at)->findings->blocks[at->index].name;
}

static const char *block_colour(const struct object_at *at, struct buf *scratch)
{
	return palette[colour_of_block(charts_of(at), (uint32_t)at->index)].css;
}

static const struct field block_field = FIELD_TEXT("name", block_name, NULL, "name of a block");
static const struct field block_colour_field = FIELD_TEXT("colour", block_colour, NULL, "color of the block, in the palette");

/* ---- palette ---- */

static const char *rgb(const struct object_at *at, struct buf *scratch)
{
	uint32_t value = *(const uint32_t *)(const void *)((const char *)at->data + at->field->offset);
	buf_char(scratch, '#');
	for (int shift = 20; shift >= 0; shift -= 4)
		buf_char(scratch, "0123456789abcdef"[value >> shift & 15]);
	return scratch->data;
}

static const struct field colour_fields[] = {
	FIELD_TEXT("light", rgb, NULL, "on a light background", .offset = offsetof(struct colour_row, light)),
	FIELD_TEXT("dark", rgb, NULL, "on a dark background", .offset = offsetof(struct colour_row, dark)),
};
static const struct object_type colour_type = OBJECT_TYPE("colour", "A color.", colour_fields);

static size_t colour_count(const struct object_at *at)
{
	return COLOURS;
}

static const char *colour_name(const struct object_at *at, size_t i)
{
	return palette[i].css;
}

static const void *colour_item(const struct object_at *at, size_t i)
{
	return &palette[i];
}

/* ---- document ---- */

#define C struct charts
static const struct field charts_fields[] = {
	FIELD_SCHEMA("wattle-charts/1"),
	FIELD_OBJECT_MAP("palette", &colour_type, colour_count, colour_name, colour_item, "the colors"),
	FIELD_OBJECT(C, "axis", axis, &axis_type, "measured time"),
	FIELD_ITEMS(C, "charts", charts, n_charts, &chart_type, "the charts"),
	FIELD_ITEMS(C, "bands", bands, n_bands, &band_type, "intervals with a state"),
	FIELD_ITEMS(C, "marks", marks, n_marks, &mark_type, "events of the run"),
	FIELD_VALUES("blocks", &block_field, block_count, "names of the blocks"),
	FIELD_VALUES("block_colours", &block_colour_field, block_count, "their colors, in the palette"),
	FIELD(C, n_spans, NULL, "spans of the run"),
	FIELD_ITEMS(C, "lanes", lanes, n_lanes, &lane_type, "spans by process, thread and depth"),
};
#undef C
const struct object_type charts_type = OBJECT_TYPE("charts", "Charts of a run.", charts_fields);

void charts_json(const struct charts *charts, struct buf *out)
{
	document_json(out, &charts_type, charts, false);
}
