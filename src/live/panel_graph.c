/* Large graph of power over time. */
#include "live/internal.h"

#include "base/util.h"

#include <stdio.h>

struct past {
	double values[MONITOR_HISTORY], parts[MONITOR_HISTORY];
	size_t n;
	double most, seconds;
};

static void take(const struct live_view *view, size_t n, struct past *past)
{
	const struct monitor_sample *now = view->now;
	n = n < MONITOR_HISTORY ? n : MONITOR_HISTORY;
	*past = (struct past){.n = n};
	for (size_t i = 0; i < n; i++) {
		past->values[i] = monitor_history_at(&now->total_history_w, n - 1 - i);
		past->parts[i] = monitor_history_at(&now->target_history_w, n - 1 - i);
		past->most = fmax(past->most, past->values[i]);
		double dt_s = monitor_history_at(view->dt_history_s, i);
		past->seconds += isnan(dt_s) ? 0 : dt_s;
	}
}

// Draws the scale at the upper and lower edge, and the length of the history.
static void draw_axis(const struct canvas *canvas, const struct area *axis, double top, double seconds)
{
	struct line line = line_in(canvas->frame, *axis, 0);
	char text[FIGURE_SIZE + 2];
	snprintf(text, sizeof(text), "%s%s", canvas->view->now->provenance == PROVENANCE_ESTIMATED ? "~" : "",
		figure_power(top).text);
	line_column(&line, pen_faint, text, axis->width - 1, true);
	line = line_in(canvas->frame, *axis, axis->height - 1);
	line_column(&line, pen_faint, "0 W", axis->width - 1, true);
	if (axis->height < 4 || !(seconds > 0))
		return;
	snprintf(text, sizeof(text), "-%s", figure_span(seconds).text);
	line = line_in(canvas->frame, *axis, axis->height / 2);
	line_column(&line, pen_faint, text, axis->width - 1, true);
}

void panel_graph(const struct canvas *canvas)
{
	enum { AXIS = 9 };
	const struct live_view *view = canvas->view;
	struct area axis = canvas->area, plot = canvas->area;
	axis.width = AXIS;
	plot.x += AXIS;
	plot.width -= AXIS;
	if (plot.width < 8)
		return;
	struct past past;
	size_t capacity = graph_capacity(canvas->frame->utf8 ? view->ui->style : GRAPH_ASCII, plot.width);
	take(view, capacity, &past);
	double top = graph_top(past.most, 0);
	const struct graph graph = {.style = view->ui->style,
		.values = past.values,
		.parts = view->pid != 0 ? past.parts : NULL,
		.n = past.n,
		.top = top,
		.pen = {.colour = view->pid != 0 ? COLOUR_IDLE : COLOUR_SERIES_0},
		.part_pen = {.colour = COLOUR_TARGET}};
	graph_draw(canvas->frame, plot, &graph);
	draw_axis(canvas, &axis, past.most > 0 ? top : (double)NAN, past.seconds);
}
