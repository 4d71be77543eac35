#include "report/picture/internal.h"

#include "base/util.h"

enum {
	LEFT = 58,
	RIGHT = 10,
	BOTTOM = 26,
	LEGEND_ROW = 17,
	SWATCH = 10,
	STRIP = 9,
	STRIP_GAP = 3,
	GAP_HEIGHT = 4,
	TOP_GAP = 15
};

/* ---- legend ---- */

struct legend {
	struct chart_picture *c;
	double x, y;
	bool draws; // false: only computes the height
};

static const char *provenance_tag(const struct chart_series *s)
{
	if (s->line == CHART_LIMIT || s->provenance == PROVENANCE_MEASURED)
		return "";
	return s->provenance == PROVENANCE_DERIVED ? ", derived" : ", estimated";
}

static bool is_of_device(const struct chart *chart, const struct chart_series *s)
{
	return chart->style == CHART_LINES && s->device != NULL && s->line != CHART_PART;
}

static size_t count_like(const struct chart *chart, enum chart_line line)
{
	size_t n = 0;
	for (size_t i = 0; i < chart->n_series; i++)
		n += chart->series[i].line == line;
	return n;
}

static const char *series_text(const struct chart *chart, const struct chart_series *s)
{
	if (is_of_device(chart, s) && count_like(chart, s->line) > 1)
		return s->line == CHART_TARGET ? "this program's part of each" : "memory of each";
	if (s->device != NULL && s->line == CHART_TARGET)
		return "this program";
	return s->line == CHART_WHOLE ? "highest of total" : s->device != NULL ? s->name : s->label;
}

static void swatch(struct legend *legend, const struct series_style *look)
{
	struct picture *p = legend->c->p;
	double y = legend->y - SWATCH + 1;
	if (look->is_area) {
		bool is_pale = legend->c->chart->style != CHART_STACKED;
		draw_rect(p, &(struct draw_style){.colour = look->colour, .opacity = is_pale ? 0.4 : 0.85}, legend->x,
			y, SWATCH, SWATCH);
		if (look->is_hatched)
			draw_hatched(p, false, legend->x, y, SWATCH, SWATCH);
		return;
	}
	draw_line(p,
		&(struct draw_style){.colour = look->colour,
			.is_line = true,
			.stroke_width = look->width + 0.4,
			.dash = look->dash},
		legend->x, y + SWATCH / 2.0, legend->x + SWATCH + 4, y + SWATCH / 2.0);
}

static void legend_key(struct legend *legend, const struct series_style *look, const char *words, const char *tag)
{
	enum { NAME_WIDTH = 260, GAP = 16, TAIL = 18 };
	struct picture *p = legend->c->p;
	double width = fmin(draw_width(words, SMALL_TEXT_SIZE), NAME_WIDTH) + draw_width(tag, SMALL_TEXT_SIZE) + TAIL;
	if (legend->x + width > p->width - RIGHT && legend->x > LEFT) {
		legend->x = LEFT;
		legend->y += LEGEND_ROW;
	}
	if (legend->draws) {
		swatch(legend, look);
		draw_text_begin(p,
			&(struct draw_text){.x = legend->x + TAIL,
				.y = legend->y,
				.colour = COLOUR_INK,
				.size = SMALL_TEXT_SIZE});
		draw_name(p->out, words, NAME_WIDTH * (double)TEXT_SIZE / SMALL_TEXT_SIZE);
		draw_string(p->out, tag);
		draw_text_end(p);
	}
	legend->x += width + GAP;
}

static void legend_item(struct legend *legend, const struct chart_series *s)
{
	struct series_style look = series_style(legend->c, s);
	if (look.is_shown)
		legend_key(legend, &look, series_text(legend->c->chart, s), provenance_tag(s));
}

// With several devices, lists each other kind of line once; colours identify the devices.
static bool is_told(const struct chart *chart, size_t series)
{
	const struct chart_series *s = &chart->series[series];
	for (size_t i = 0; i < series && is_of_device(chart, s); i++)
		if (chart->series[i].line == s->line)
			return true;
	return false;
}

static const char *unit_of_title(const struct chart *chart)
{
	return strcmp(chart->unit, "cores") == 0 ? ", cores" : "";
}

static bool has_device(const struct chart *chart, const struct run_device *device)
{
	for (size_t i = 0; i < chart->n_series; i++)
		if (chart->series[i].device == device)
			return true;
	return false;
}

// Hides device bands in temperature and memory charts, to which throttling and missing readings do not apply.
static bool is_shown(const struct chart *chart, const struct chart_band *band)
{
	return band->device == NULL ||
		(has_device(chart, band->device) && strcmp(chart->id, "temperature") != 0 &&
			strcmp(chart->id, "gpu_memory") != 0);
}

static const struct {
	const char *kind, *words;
	enum colour colour;
} band_styles[] = {{"throttle", "clocks throttled", COLOUR_THROTTLE}, {"gap", "not read", COLOUR_FAINT}};

static bool has_band(const struct chart_picture *c, const char *kind)
{
	for (size_t i = 0; i < c->p->charts->n_bands; i++)
		if (strcmp(c->p->charts->bands[i].kind, kind) == 0 && is_shown(c->chart, &c->p->charts->bands[i]))
			return true;
	return false;
}

// Returns the top of the plot area.
static double legend_and_title(struct chart_picture *c, bool draws)
{
	struct picture *p = c->p;
	char title[64];
	text_copy(title, sizeof(title), c->chart->title);
	double width = fmin(draw_width(c->chart->title, TEXT_SIZE) * 1.06, 220) +
		draw_width(unit_of_title(c->chart), TEXT_SIZE);
	struct legend legend = {.c = c, .x = fmax(width + 20, LEFT), .y = 13, .draws = draws};
	if (draws) {
		draw_text_begin(p, &(struct draw_text){.x = 0, .y = 13, .colour = COLOUR_INK, .is_bold = true});
		draw_name(p->out, c->chart->title, 220);
		draw_string(p->out, unit_of_title(c->chart));
		draw_text_end(p);
	}
	for (size_t i = 0; i < c->chart->n_series; i++)
		if (c->chart->series[i].line == CHART_PART)
			legend_item(&legend, &c->chart->series[i]);
	for (size_t i = 0; i < c->chart->n_series; i++)
		if (c->chart->series[i].line != CHART_PART && !is_told(c->chart, i))
			legend_item(&legend, &c->chart->series[i]);
	for (size_t i = 0; i < ARRAY_SIZE(band_styles); i++)
		if (has_band(c, band_styles[i].kind))
			legend_key(&legend, &(struct series_style){.colour = band_styles[i].colour, .width = STRIP - 3},
				band_styles[i].words, "");
	return legend.y + TOP_GAP;
}

/* ---- columns ---- */

static void add_bucket(struct chart_picture *c, size_t bucket, size_t segment, size_t *last_segment)
{
	const struct chart_axis *axis = &c->p->charts->axis;
	double x0 = axis_x(c->p, &c->plot, axis->from_s[bucket]), x1 = axis_x(c->p, &c->plot, axis->to_s[bucket]);
	struct picture_column *last = c->n > 0 ? &c->columns[c->n - 1] : NULL;
	bool same = last != NULL && segment == *last_segment;
	if (last != NULL && ((same && x1 - last->x0 <= 1) || c->n == COLUMNS_MAX)) {
		last->end = bucket + 1;
		last->x1 = x1;
		c->is_decimated = true;
		return;
	}
	c->columns[c->n++] = (struct picture_column){bucket, bucket + 1, x0, x1, same};
	*last_segment = segment;
}

static void make_columns(struct chart_picture *c)
{
	const struct chart_axis *axis = &c->p->charts->axis;
	size_t segment = 0, last_segment = 0;
	for (size_t i = 0; i < axis->n; i++) {
		double middle_s = (axis->from_s[i] + axis->to_s[i]) / 2;
		while (segment + 1 < axis->n_segments && middle_s > axis->segments[segment].to_s)
			segment++;
		add_bucket(c, i, segment, &last_segment);
	}
	for (size_t k = 0; k < c->chart->n_series && !c->is_decimated; k++) {
		const struct chart_series *s = &c->chart->series[k];
		for (size_t i = 0; i < axis->n; i++)
			c->is_decimated |= s->high[i] - s->low[i] > 0.02 * fabs(s->mean[i]);
	}
}

/* ---- frame ---- */

static double highest_shown(const struct chart_picture *c)
{
	double highest = -INFINITY;
	for (size_t k = 0; k < c->chart->n_series; k++) {
		const struct chart_series *s = &c->chart->series[k];
		if (series_style(c, s).is_shown || s->line == CHART_WHOLE)
			highest = fmax(highest, s->highest);
	}
	return isfinite(highest) ? highest : 0;
}

static double lowest_shown(const struct chart_picture *c)
{
	double lowest = INFINITY;
	for (size_t k = 0; k < c->chart->n_series; k++)
		lowest = fmin(lowest, c->chart->series[k].lowest);
	return isfinite(lowest) ? lowest : 0;
}

// Temperatures and custom metrics have no natural zero.
static bool begins_at_zero(const struct chart *chart)
{
	return chart->unit[0] != '\0' && strcmp(chart->unit, "c") != 0;
}

static void ceiling(struct chart_picture *c)
{
	double y = value_axis_y(&c->axis, &c->plot, c->chart->ceiling);
	if (!(c->chart->ceiling <= c->axis.high))
		return;
	draw_line(c->p, &(struct draw_style){.colour = COLOUR_FAINT, .is_line = true, .dash = "6 3"}, c->plot.left, y,
		c->plot.right, y);
}

/* Throttling is a strip above the plot, separate from limits and lines; its height is the share of time. A gap of all
 * readings is hatched; a gap of a single device is a line along the top. */
static void throttle(struct chart_picture *c, const struct chart_band *band, double x0, double x1)
{
	double length_s = band->to_s - band->from_s, share = length_s > 0 ? fmin(band->covered_s / length_s, 1) : 1;
	double height = fmax(STRIP * share, 2);
	draw_rect(c->p, &(struct draw_style){.colour = COLOUR_THROTTLE}, x0, c->plot.top - STRIP_GAP - height, x1 - x0,
		height);
}

static void bands(struct chart_picture *c)
{
	struct picture *p = c->p;
	if (has_band(c, "throttle"))
		draw_rect(p, &(struct draw_style){.colour = COLOUR_PANEL}, c->plot.left,
			c->plot.top - STRIP_GAP - STRIP, c->plot.right - c->plot.left, STRIP);
	for (size_t i = 0; i < p->charts->n_bands; i++) {
		const struct chart_band *band = &p->charts->bands[i];
		double x0 = axis_x(p, &c->plot, band->from_s), x1 = fmax(axis_x(p, &c->plot, band->to_s), x0 + 1);
		bool is_gap = strcmp(band->kind, "gap") == 0;
		if (!is_shown(c->chart, band))
			continue;
		if (is_gap && band->device == NULL)
			draw_hatched(p, true, x0, c->plot.top, x1 - x0, plot_height(&c->plot));
		else if (is_gap)
			draw_rect(p, &(struct draw_style){.colour = COLOUR_FAINT, .opacity = 0.75}, x0, c->plot.top,
				x1 - x0, GAP_HEIGHT);
		else
			throttle(c, band, x0, x1);
	}
}

static struct chart_picture begin(struct picture *p, const struct chart *chart)
{
	struct chart_picture c = {.p = p, .chart = chart};
	c.plot = (struct plot){.left = LEFT, .right = p->width - RIGHT, .bottom = p->height - BOTTOM};
	make_columns(&c);
	c.plot.above = has_band(&c, "throttle") ? STRIP + STRIP_GAP : 0;
	c.plot.top = legend_and_title(&c, false) + c.plot.above;
	return c;
}

// A long legend adds height and does not shrink the plot.
double picture_chart_height(const struct picture *p, const struct chart *chart)
{
	struct picture unseen = *p;
	return begin(&unseen, chart).plot.top + BOTTOM + (chart->style == CHART_STACKED ? 216 : 96);
}

void picture_chart(struct picture *p, const struct chart *chart)
{
	struct chart_picture c = begin(p, chart);
	double highest = highest_shown(&c);
	if (chart->ceiling <= 1.25 * highest)
		highest = fmax(highest, chart->ceiling);
	c.axis = value_axis_make(chart->unit, lowest_shown(&c), highest, begins_at_zero(chart));
	legend_and_title(&c, true);
	value_axis_draw(p, &c.plot, &c.axis);
	series_draw(&c);
	ceiling(&c);
	bands(&c);
	axis_time(p, &c.plot);
}
