#include "report/picture/internal.h"

#include "base/util.h"
#include "report/report.h"

enum { TICKS_APART = 78 }; // minimum distance in pixels

/* ---- time ---- */

double axis_x(const struct picture *p, const struct plot *plot, double at_s)
{
	double length_s = p->charts->axis.length_s;
	return length_s > 0 ? plot->left + at_s / length_s * plot_width(plot) : plot->left;
}

static double nice_step(double rough)
{
	double ten = pow(10, floor(log10(rough))), part = rough / ten;
	return ten * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static double time_step(double min_step_s)
{
	static const double steps_s[] = {60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400};
	if (min_step_s <= 30)
		return min_step_s > 20 ? 30 : nice_step(min_step_s);
	for (size_t i = 0; i < ARRAY_SIZE(steps_s); i++)
		if (min_step_s <= steps_s[i])
			return steps_s[i];
	return 86400 * nice_step(min_step_s / 86400);
}

// Tick labels with a resolution of minutes.
static void minute_text(struct buf *out, double at_s)
{
	long long minutes = llround(at_s / 60), hours = minutes / 60;
	if (hours == 0)
		buf_printf(out, "%lld min", minutes);
	else if (minutes % 60 == 0)
		buf_printf(out, "%lld h", hours);
	else
		buf_printf(out, "%lld h %02lld min", hours, minutes % 60);
}

// Short times in a single unit; from one minute on, steps with seconds are labelled "1:30".
static void second_text(struct buf *out, double at_s, double step_s, double length_s)
{
	if (step_s >= 1 && at_s > 59) {
		long long s = llround(at_s);
		if (s >= 3600)
			buf_printf(out, "%lld:%02lld:%02lld", s / 3600, s % 3600 / 60, s % 60);
		else
			buf_printf(out, "%lld:%02lld", s / 60, s % 60);
		return;
	}
	bool is_us = length_s < 0.002;
	double size = length_s >= 1 ? 1 : is_us ? 1e-6 : 1e-3, part = step_s / size;
	buf_fixed(out, at_s / size, part < 0.999 ? (part < 0.0999 ? 2 : 1) : 0);
	buf_str(out, length_s >= 1 ? " s" : is_us ? " µs" : " ms");
}

// Same format as the page's axis: clockText in assets/axis.js.
static void tick_text(struct buf *out, double at_s, double step_s, double length_s)
{
	if (step_s < 60)
		second_text(out, at_s, step_s, length_s);
	else if (at_s < 30)
		buf_char(out, '0');
	else
		minute_text(out, at_s);
}

static void pauses(struct picture *p, const struct plot *plot)
{
	const struct chart_axis *axis = &p->charts->axis;
	double free_from = plot->left;
	for (size_t s = 1; s < axis->n_segments; s++) {
		const struct chart_segment *segment = &axis->segments[s];
		double x = axis_x(p, plot, segment->from_s);
		draw_line(p, &(struct draw_style){.colour = COLOUR_FAINT, .is_line = true, .dash = "3 3"}, x, plot->top,
			x, plot->bottom);
		if (x < free_from || x + 90 > plot->right)
			continue;
		draw_text_begin(p,
			&(struct draw_text){.x = x + 2,
				.y = plot->top - plot->above - 3,
				.colour = COLOUR_FAINT,
				.size = SMALL_TEXT_SIZE - 1});
		buf_str(p->out, "pause");
		if (segment->pause_s > 0) {
			buf_char(p->out, ' ');
			time_text(p->out, segment->pause_s);
		}
		draw_text_end(p);
		free_from = x + 110;
	}
}

void axis_time(struct picture *p, const struct plot *plot)
{
	const struct draw_style line = {.colour = COLOUR_FAINT, .is_line = true};
	double length_s = p->charts->axis.length_s;
	draw_line(p, &line, plot->left, plot->bottom, plot->right, plot->bottom);
	pauses(p, plot);
	if (!(length_s > 0))
		return;
	double step_s = time_step(length_s * TICKS_APART / plot_width(plot));
	for (long long i = 0; (double)i * step_s <= length_s * (1 + 1e-9); i++) {
		double at_s = (double)i * step_s, x = axis_x(p, plot, at_s);
		draw_line(p, &line, x, plot->bottom, x, plot->bottom + 4);
		draw_text_begin(p,
			&(struct draw_text){.x = fmin(x, plot->right - 2),
				.y = plot->bottom + 17,
				.anchor = x > plot->right - 14 ? ANCHOR_END : ANCHOR_MIDDLE,
				.colour = COLOUR_FAINT,
				.size = SMALL_TEXT_SIZE});
		tick_text(p->out, at_s, step_s, length_s);
		draw_text_end(p);
	}
}

void time_text(struct buf *out, double seconds)
{
	human_time(out, seconds);
}

/* ---- values ---- */

struct value_axis value_axis_make(const char *unit, double lowest, double highest, bool from_zero)
{
	enum { STEPS = 4 };
	double low = from_zero ? fmin(lowest, 0) : lowest;
	if (!(highest > low)) // a single value, or none
		highest = low + (low != 0 ? fabs(low) : 1);
	const struct human_unit *shown = human_unit(unit, fmax(fabs(low), fabs(highest)), 3);
	double step = nice_step((highest - low) / STEPS / shown->size) * shown->size;
	if (strcmp(unit, "processes") == 0 || strcmp(unit, "c") == 0)
		step = fmax(step, 1);
	struct value_axis axis = {.low = floor(low / step + 1e-9) * step,
		.high = ceil(highest / step - 1e-9) * step,
		.step = step,
		.size = shown->size,
		.unit = shown->name};
	double part = step / shown->size;
	axis.decimals = part >= 0.9999 ? 0 : (int)ceil(-log10(part) - 1e-9);
	return axis;
}

double value_axis_y(const struct value_axis *axis, const struct plot *plot, double value)
{
	double part = (value - axis->low) / (axis->high - axis->low);
	return plot->bottom - fmin(fmax(part, 0), 1) * plot_height(plot);
}

void value_axis_draw(struct picture *p, const struct plot *plot, const struct value_axis *axis)
{
	long long n = llround((axis->high - axis->low) / axis->step);
	for (long long i = 0; i <= n; i++) {
		double value = axis->low + (double)i * axis->step, y = value_axis_y(axis, plot, value);
		if (i > 0)
			draw_line(p, &(struct draw_style){.colour = COLOUR_LINE, .is_line = true}, plot->left, y,
				plot->right, y);
		draw_text_begin(p,
			&(struct draw_text){.x = plot->left - 6,
				.y = y + 4,
				.anchor = ANCHOR_END,
				.colour = COLOUR_FAINT,
				.size = SMALL_TEXT_SIZE});
		double shown = value / axis->size;
		buf_fixed(p->out, shown, axis->decimals < 9 ? axis->decimals : 9);
		if (i == n && axis->unit[0] != '\0') {
			buf_char(p->out, ' ');
			draw_string(p->out, axis->unit);
		}
		draw_text_end(p);
	}
}

void value_text(struct buf *out, const char *unit, double value)
{
	if (isnan(value)) {
		buf_str(out, "n/a");
		return;
	}
	const struct human_unit *shown = human_unit(unit, value, 3);
	human_number(out, value / shown->size, 3);
	if (shown->name[0] == '\0')
		return;
	buf_char(out, ' ');
	draw_string(out, shown->name);
}
