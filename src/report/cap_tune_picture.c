#include "report/cap_report.h"

#include "base/util.h"
#include "report/html.h"
#include "report/report.h"

enum { WIDTH = 760, HEIGHT = 400, LEFT = 64, RIGHT = 16, TOP = 28, BOTTOM = 52, TICKS = 6 };

struct axis { // maps values to coordinates
	double low, high;
	double from, to;
};

struct picture {
	const struct cap_tune_report *report;
	struct buf *out;
	struct axis x, y; // y: percent of the objective at the reference
	double reference;
};

static double scale_x(const struct axis *axis, double value)
{
	return axis->from + (value - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

static void widen(struct axis *axis, double value)
{
	if (!isfinite(value))
		return;
	axis->low = fmin(axis->low, value);
	axis->high = fmax(axis->high, value);
}

// 1, 2 or 5 times a power of ten that gives about TICKS ticks.
static double tick_distance(const struct axis *axis)
{
	double rounded = (axis->high - axis->low) / TICKS, ten = pow(10, floor(log10(rounded))), part = rounded / ten;
	return ten * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static double percent(const struct picture *p, double objective)
{
	return 100 * objective / p->reference;
}

static void at(struct buf *out, const char *name, double value)
{
	buf_printf(out, " %s=\"", name);
	buf_fixed(out, value, 1);
	buf_char(out, '"');
}

static void line(struct buf *out, const char *class, double x1, double y1, double x2, double y2)
{
	buf_printf(out, "<line class=\"%s\"", class);
	at(out, "x1", x1);
	at(out, "y1", y1);
	at(out, "x2", x2);
	at(out, "y2", y2);
	buf_str(out, "/>\n");
}

static void begin_label(struct buf *out, const char *class, const char *anchor, double x, double y)
{
	buf_printf(out, "<text class=\"%s\" text-anchor=\"%s\"", class, anchor);
	at(out, "x", x);
	at(out, "y", y);
	buf_char(out, '>');
}

static void value_label(struct buf *out, double value, double distance)
{
	buf_fixed(out, value, distance < 1 ? 1 : 0);
	buf_str(out, "</text>\n");
}

static void axes(const struct picture *p)
{
	struct buf *out = p->out;
	double step = tick_distance(&p->y);
	for (double v = ceil(p->y.low / step) * step; v <= p->y.high; v += step) {
		line(out, "grid", LEFT, scale_x(&p->y, v), WIDTH - RIGHT, scale_x(&p->y, v));
		begin_label(out, "faint", "end", LEFT - 8, scale_x(&p->y, v) + 4);
		value_label(out, v, step);
	}
	step = tick_distance(&p->x);
	for (double v = ceil(p->x.low / step) * step; v <= p->x.high; v += step) {
		line(out, "grid", scale_x(&p->x, v), TOP, scale_x(&p->x, v), HEIGHT - BOTTOM);
		begin_label(out, "faint", "middle", scale_x(&p->x, v), HEIGHT - BOTTOM + 20);
		value_label(out, v, step);
	}
	begin_label(out, "", "middle", (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10);
	buf_printf(out, "%s in %s</text>\n", p->report->what == CAP_CLOCKS ? "highest clock" : "power limit",
		cap_kind_unit(p->report->what));
	begin_label(out, "", "start", 8, 16);
	buf_printf(out, "%s a step, %% of that at the highest limit</text>\n", tune_goal_title(p->report->result.goal));
}

static void curve(const struct picture *p)
{
	const struct tune_result *result = &p->report->result;
	if (result->n_curve < 2)
		return;
	buf_str(p->out, "<polyline class=\"curve\" points=\"");
	for (size_t i = 0; i < result->n_curve; i++) {
		buf_fixed(p->out, scale_x(&p->x, result->curve_x[i]), 1);
		buf_char(p->out, ',');
		buf_fixed(p->out, scale_x(&p->y, percent(p, result->curve_y[i])), 1);
		buf_char(p->out, ' ');
	}
	buf_str(p->out, "\"/>\n");
}

static void point(const struct picture *p, const struct tune_limit_result *row)
{
	double x = scale_x(&p->x, row->limit);
	if (!isfinite(row->objective.value))
		return;
	buf_printf(p->out, "<g%s>", row->is_allowed ? "" : " class=\"refused\"");
	if (isfinite(row->objective.low) && isfinite(row->objective.high)) {
		double low = scale_x(&p->y, percent(p, row->objective.low)),
		       high = scale_x(&p->y, percent(p, row->objective.high));
		line(p->out, "bar", x, low, x, high);
		line(p->out, "bar", x - 4, low, x + 4, low);
		line(p->out, "bar", x - 4, high, x + 4, high);
	}
	buf_str(p->out, "<circle class=\"dot\" r=\"4\"");
	at(p->out, "cx", x);
	at(p->out, "cy", scale_x(&p->y, percent(p, row->objective.value)));
	buf_str(p->out, "/></g>\n");
}

static void chosen(const struct picture *p)
{
	double x = scale_x(&p->x, p->report->chosen);
	bool is_right = x > (LEFT + WIDTH) / 2.0;
	line(p->out, "chosen", x, TOP, x, HEIGHT - BOTTOM);
	begin_label(p->out, "", is_right ? "end" : "start", x + (is_right ? -6 : 6), TOP + 14);
	buf_fixed(p->out, p->report->chosen, 0);
	buf_printf(p->out, " %s chosen</text>\n", cap_kind_unit(p->report->what));
}

static void words(const struct picture *p, size_t number)
{
	const struct tune_result *result = &p->report->result;
	buf_printf(p->out, "<title id=\"t%zu\">", number);
	buf_printf(p->out, "%s a step under each limit</title>\n<desc id=\"d%zu\">", tune_goal_title(result->goal),
		number);
	for (size_t i = 0; i < result->n_limits; i++) {
		const struct tune_limit_result *row = &result->limits[i];
		if (!isfinite(row->objective.value))
			continue;
		buf_fixed(p->out, row->limit, 0);
		buf_printf(p->out, " %s: ", cap_kind_unit(p->report->what));
		buf_fixed(p->out, percent(p, row->objective.value), 1);
		buf_str(p->out, " %; ");
	}
	buf_str(p->out, "chosen: ");
	buf_fixed(p->out, p->report->chosen, 0);
	buf_printf(p->out, " %s.</desc>\n", cap_kind_unit(p->report->what));
}

static void scale(struct picture *p)
{
	const struct tune_result *result = &p->report->result;
	p->x = (struct axis){INFINITY, -INFINITY, LEFT, WIDTH - RIGHT};
	p->y = (struct axis){INFINITY, -INFINITY, HEIGHT - BOTTOM, TOP};
	for (size_t i = 0; i < result->n_limits; i++) {
		const struct tune_interval *objective = &result->limits[i].objective;
		widen(&p->x, result->limits[i].limit);
		widen(&p->y, percent(p, objective->value));
		widen(&p->y, percent(p, objective->low));
		widen(&p->y, percent(p, objective->high));
	}
	for (size_t i = 0; i < result->n_curve; i++)
		widen(&p->y, percent(p, result->curve_y[i]));
	double margin_x = 0.04 * (p->x.high - p->x.low), margin_y = fmax(0.06 * (p->y.high - p->y.low), 0.5);
	p->x.low -= margin_x;
	p->x.high += margin_x;
	p->y.low -= margin_y;
	p->y.high += margin_y;
}

void cap_tune_picture(const struct cap_tune_report *report, struct buf *out, size_t number)
{
	const struct tune_result *result = &report->result;
	struct picture p = {.report = report, .out = out, .reference = result->limits[0].objective.value};
	scale(&p);
	if (!isfinite(p.y.low) || !isfinite(p.y.high) || !(p.x.high > p.x.low))
		return;
	buf_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"t%zu d%zu\">\n", WIDTH, HEIGHT,
		number, number);
	words(&p, number);
	axes(&p);
	curve(&p);
	for (size_t i = 0; i < result->n_limits; i++)
		point(&p, &result->limits[i]);
	chosen(&p);
	buf_str(out, "</svg>\n");
}
