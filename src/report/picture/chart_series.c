// Series of a chart: stacked areas, or lines with a pale band for the range within each mean.
#include "report/picture/internal.h"

#include "base/util.h"

#include <stdlib.h>

// Number of domains after the d-th that are in the total, of the same kind (GPU or not).
static unsigned int count_after(const struct findings *f, size_t d, bool is_gpu)
{
	unsigned int n = 0;
	for (d++; d < f->n_domains; d++)
		n += f->domains[d].in_total && (f->domains[d].device->kind == DOMAIN_GPU) == is_gpu;
	return n;
}

enum colour colour_of_device(const struct findings *f, const struct run_device *device)
{
	bool is_gpu = device->kind == DOMAIN_GPU;
	unsigned int in_total = 0, beside = 0; // domains in the total are numbered first, GPUs and others separately
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct domain_finding *domain = &f->domains[d];
		if (domain->device == device && !domain->in_total)
			in_total += beside + count_after(f, d, is_gpu);
		if (domain->device == device)
			return is_gpu ? colour_of_series(in_total) : colour_of_host(in_total);
		if ((domain->device->kind == DOMAIN_GPU) == is_gpu) {
			in_total += domain->in_total;
			beside += !domain->in_total;
		}
	}
	// Without a domain: one of several runs, by index (chart/merge_runs.h).
	return colour_of_series(device->index > 0 ? (unsigned int)device->index : 0);
}

// Sub-domains of the total would clutter the chart; enclosing domains get a line.
static bool is_outer(const struct run_device *device)
{
	static const enum domain_kind outer[] = {DOMAIN_PSYS, DOMAIN_NODE, DOMAIN_MODULE, DOMAIN_BATTERY, DOMAIN_WALL};
	for (size_t i = 0; device != NULL && i < ARRAY_SIZE(outer); i++)
		if (device->kind == outer[i])
			return true;
	return false;
}

// Shown if it is the only limit and power comes near it; several could be read as limits of the sum.
static bool limit_is_shown(const struct chart *chart, const struct chart_series *limit)
{
	double highest = 0;
	for (size_t i = 0; i < chart->n_series; i++) {
		const struct chart_series *s = &chart->series[i];
		if (s->line == CHART_LIMIT && s != limit)
			return false;
		if (s->line == CHART_WHOLE)
			highest = s->highest;
	}
	return highest > 0.6 * limit->highest;
}

static struct series_style stacked_style(const struct chart_picture *c, const struct chart_series *s)
{
	bool is_target = s->line == CHART_TARGET;
	struct series_style look = {.colour = is_target ? COLOUR_INK : COLOUR_FAINT, .width = is_target ? 1 : 0.8};
	look.is_shown = true;
	if (s->line == CHART_PART) {
		look.colour = colour_of_device(c->p->f, s->device);
		look.is_area = true;
		look.is_hatched = s->provenance == PROVENANCE_ESTIMATED;
	} else if (s->line == CHART_WHOLE) {
		look.is_shown = c->is_decimated;
		look.width = 0.6;
	} else if (s->line == CHART_BESIDE) {
		look.is_shown = is_outer(s->device);
		look.dash = "5 3";
	} else if (s->line == CHART_LIMIT) {
		look.is_shown = limit_is_shown(c->chart, s);
		look.colour = COLOUR_WARN;
		look.dash = "2 3";
	}
	return look;
}

static bool has_mean(const struct chart *chart)
{
	for (size_t i = 0; i < chart->n_series; i++)
		if (chart->series[i].line == CHART_MEAN)
			return true;
	return false;
}

struct series_style series_style(const struct chart_picture *c, const struct chart_series *s)
{
	if (c->chart->style == CHART_STACKED)
		return stacked_style(c, s);
	struct series_style look = {.colour = COLOUR_TARGET, .width = 1.4, .is_shown = true, .has_range = true};
	if (has_mean(c->chart)) { // with many devices: the mean and its range; single devices as thin lines
		look.is_shown = s->line == CHART_MEAN || s->line == CHART_PART;
		look.has_range = s->line == CHART_MEAN;
		look.width = s->line == CHART_MEAN ? 1.8 : 0.7;
		look.opacity = s->line == CHART_MEAN ? 0 : 0.6;
	}
	if (s->line == CHART_MEAN) {
		look.colour = COLOUR_INK;
	} else if (s->device != NULL) {
		look.colour = colour_of_device(c->p->f, s->device);
		look.dash = s->line == CHART_PART ? NULL : s->line == CHART_TARGET ? "4 2" : "1 2";
	} else if (strcmp(s->name, "machine") == 0) {
		look.colour = COLOUR_IDLE;
		look.is_area = true;
	} else if (strcmp(s->name, "wattle") == 0) {
		look.colour = COLOUR_WATTLE;
	} else if (s->line == CHART_BESIDE) {
		look.dash = "4 2";
	}
	return look;
}

// Mean weighted by bucket length over known values; the extremes are over all buckets.
struct picture_point series_point(const struct chart_picture *c, const struct chart_series *s,
	const struct picture_column *column)
{
	const struct chart_axis *axis = &c->p->charts->axis;
	struct picture_point point = {0, INFINITY, -INFINITY};
	double known_s = 0;
	for (size_t i = column->begin; i < column->end; i++) {
		if (isnan(s->mean[i]))
			continue;
		double length_s = axis->to_s[i] - axis->from_s[i];
		point.mean += s->mean[i] * length_s;
		known_s += length_s;
		point.low = fmin(point.low, s->low[i]);
		point.high = fmax(point.high, s->high[i]);
	}
	if (!(known_s > 0))
		return (struct picture_point){(double)NAN, (double)NAN, (double)NAN};
	point.mean /= known_s;
	return point;
}

static double y_of(const struct chart_picture *c, double value)
{
	return value_axis_y(&c->axis, &c->plot, value);
}

typedef double (*choose)(const struct picture_point *);

static double the_mean(const struct picture_point *point)
{
	return point->mean;
}

static double the_low(const struct picture_point *point)
{
	return point->low;
}

static double the_high(const struct picture_point *point)
{
	return point->high;
}

static double value_at(const struct chart_picture *c, const struct chart_series *s, size_t column, choose which)
{
	struct picture_point point = series_point(c, s, &c->columns[column]);
	return which(&point);
}

// Draws steps, because a bucket's value applies to all of its time. Custom metrics are instants, which may be joined by a
// line.
static void steps(struct chart_picture *c, const struct chart_series *s, choose which)
{
	bool is_metric = strncmp(c->chart->id, "metric:", strlen("metric:")) == 0, on = false;
	for (size_t i = 0; i < c->n; i++) {
		const struct picture_column *column = &c->columns[i];
		double value = value_at(c, s, i, which);
		if (isnan(value)) {
			on = on && is_metric;
			continue;
		}
		double y = y_of(c, value), middle = (column->x0 + column->x1) / 2;
		if (is_metric) {
			draw_to(c->p, on ? 'L' : 'M', middle, y);
		} else {
			draw_to(c->p, on && column->joins ? 'V' : 'M', column->x0, y);
			draw_to(c->p, 'H', column->x1, y);
		}
		on = true;
	}
}

static void line(struct chart_picture *c, const struct chart_series *s, const struct draw_style *style, choose which)
{
	draw_path_begin(c->p, style);
	steps(c, s, which);
	draw_path_end(c->p);
}

// Draws consecutive columns without a hole: along the upper edge, back along the lower edge.
static void area_interval(struct chart_picture *c, const double *lower, const double *upper, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		draw_to(c->p, i == begin ? 'M' : 'V', c->columns[i].x0, y_of(c, upper[i]));
		draw_to(c->p, 'H', c->columns[i].x1, 0);
	}
	for (size_t i = end; i > begin; i--) {
		draw_to(c->p, i == end ? 'L' : 'V', c->columns[i - 1].x1, y_of(c, lower[i - 1]));
		draw_to(c->p, 'H', c->columns[i - 1].x0, 0);
	}
	draw_to(c->p, 'Z', 0, 0);
}

static void areas(struct chart_picture *c, const double *lower, const double *upper)
{
	for (size_t begin = 0, end; begin < c->n; begin = end) {
		end = begin + 1;
		if (isnan(upper[begin]) || isnan(lower[begin]))
			continue;
		while (end < c->n && c->columns[end].joins && !isnan(upper[end]) && !isnan(lower[end]))
			end++;
		area_interval(c, lower, upper, begin, end);
	}
}

static void fill(struct chart_picture *c, const struct draw_style *style, const double *lower, const double *upper)
{
	draw_path_begin(c->p, style);
	areas(c, lower, upper);
	draw_path_end(c->p);
}

/* ---- stacked areas ---- */

// True if the part's device has a limit and the chart has at most two; more limits would hide the areas.
static bool has_limit(const struct chart *chart, const struct chart_series *part)
{
	size_t n = 0;
	bool has = false;
	for (size_t i = 0; i < chart->n_series; i++) {
		if (chart->series[i].line != CHART_LIMIT)
			continue;
		n++;
		has |= chart->series[i].device == part->device;
	}
	return has && n <= 2;
}

// Draws one part of the stack and adds it to `lower`. Unknown values count as 0 unless all parts are unknown.
static void stack_part(struct chart_picture *c, const struct chart_series *s, double *lower)
{
	double upper[COLUMNS_MAX];
	struct series_style look = series_style(c, s);
	for (size_t i = 0; i < c->n; i++)
		upper[i] = lower[i] + value_at(c, s, i, the_mean);
	fill(c, &(struct draw_style){.colour = look.colour, .opacity = 0.85}, lower, upper);
	if (look.is_hatched) {
		draw_path_hatched(c->p);
		areas(c, lower, upper);
		draw_path_end(c->p);
	}
	for (size_t i = 0; i < c->n; i++)
		lower[i] = isnan(upper[i]) ? lower[i] : upper[i];
}

// Parts with a limit are at the bottom, so that a single limit is a horizontal line; the page's chart (assets/paint.js) does
// the same.
static void stack(struct chart_picture *c)
{
	double lower[COLUMNS_MAX] = {0};
	for (int limited = 1; limited >= 0; limited--)
		for (size_t k = 0; k < c->chart->n_series; k++) {
			const struct chart_series *s = &c->chart->series[k];
			if (s->line == CHART_PART && has_limit(c->chart, s) == (limited == 1))
				stack_part(c, s, lower);
		}
}

enum { DENSE = 3, COARSE = 8 }; // pixels; narrower steps of an oscillating dark line merge into a blot

static bool is_dense(const struct chart_picture *c)
{
	return (double)c->n > (c->plot.right - c->plot.left) / DENSE;
}

// Draws means over wider steps, with the range as a pale band.
static void coarse_line(struct chart_picture *c, const struct chart_series *s, const struct draw_style *style)
{
	struct chart_picture *wide = malloc(sizeof(*wide)); // on the heap: columns for each pixel
	if (wide == NULL) {
		line(c, s, style, the_mean);
		return;
	}
	*wide = *c;
	wide->n = 0;
	for (size_t i = 0; i < c->n; i++) {
		struct picture_column *last = wide->n > 0 ? &wide->columns[wide->n - 1] : NULL;
		if (last != NULL && c->columns[i].joins && c->columns[i].x1 - last->x0 <= COARSE) {
			last->end = c->columns[i].end;
			last->x1 = c->columns[i].x1;
		} else {
			wide->columns[wide->n++] = c->columns[i];
		}
	}
	double lower[COLUMNS_MAX], upper[COLUMNS_MAX];
	for (size_t i = 0; i < wide->n; i++) {
		lower[i] = value_at(wide, s, i, the_low);
		upper[i] = value_at(wide, s, i, the_high);
	}
	fill(wide, &(struct draw_style){.colour = style->colour, .opacity = 0.09}, lower, upper);
	line(wide, s, style, the_mean);
	free(wide);
}

static void over_stack(struct chart_picture *c)
{
	for (size_t k = 0; k < c->chart->n_series; k++) {
		const struct chart_series *s = &c->chart->series[k];
		struct series_style look = series_style(c, s);
		if (s->line == CHART_PART || !look.is_shown)
			continue;
		const struct draw_style style = {.colour = look.colour,
			.is_line = true,
			.stroke_width = look.width,
			.dash = look.dash};
		if (s->line == CHART_TARGET && is_dense(c))
			coarse_line(c, s, &style);
		else
			line(c, s, &style, s->line == CHART_WHOLE ? the_high : the_mean);
	}
}

/* ---- lines ---- */

static void range(struct chart_picture *c, const struct chart_series *s, const struct series_style *look)
{
	double lower[COLUMNS_MAX], upper[COLUMNS_MAX];
	for (size_t i = 0; i < c->n; i++) {
		lower[i] = look->is_area ? c->axis.low : value_at(c, s, i, the_low);
		upper[i] = value_at(c, s, i, look->is_area ? the_mean : the_high);
	}
	fill(c, &(struct draw_style){.colour = look->colour, .opacity = look->is_area ? 0.3 : 0.22}, lower, upper);
}

static void lines(struct chart_picture *c)
{
	for (size_t k = 0; k < c->chart->n_series; k++) {
		const struct chart_series *s = &c->chart->series[k];
		struct series_style look = series_style(c, s);
		if (look.is_shown && look.has_range && (look.is_area || c->is_decimated || s->line == CHART_MEAN))
			range(c, s, &look);
	}
	for (size_t k = 0; k < c->chart->n_series; k++) {
		const struct chart_series *s = &c->chart->series[k];
		struct series_style look = series_style(c, s);
		if (!look.is_shown)
			continue;
		line(c, s,
			&(struct draw_style){.colour = look.colour,
				.is_line = true,
				.opacity = look.opacity,
				.stroke_width = look.is_area ? 0.8 : look.width,
				.dash = look.dash},
			look.is_area && c->is_decimated ? the_high : the_mean);
	}
}

void series_draw(struct chart_picture *c)
{
	if (c->chart->style == CHART_STACKED) {
		stack(c);
		over_stack(c);
	} else {
		lines(c);
	}
}
