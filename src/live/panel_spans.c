/* The running spans of the program. */
#include "live/internal.h"

#include "base/util.h"

static void draw_title(const struct canvas *canvas)
{
	const struct live_run *run = canvas->view->run;
	struct line line = line_in(canvas->frame, canvas->area, 0);
	line_column(&line, pen_plain, "FOR", 9, true);
	line_blank(&line, 1);
	line_column(&line, pen_plain, "PID", 7, true);
	line_blank(&line, 1);
	line_printf(&line, pen_plain, "SPAN (%lld running", (long long)run->spans_open);
	// Spans are as old as the last stored sample; W and J of the other panels are current.
	if (value_ok(run->stored_ns))
		line_printf(&line, pen_plain, ", %s ago",
			figure_span((double)(canvas->view->now->t_ns - run->stored_ns) * 1e-9).text);
	line_text(&line, pen_plain, ")");
	frame_set_attributes(canvas->frame, (struct area){canvas->area.x, canvas->area.y, canvas->area.width, 1},
		ATTRIBUTE_REVERSE);
}

static void draw_span(const struct canvas *canvas, const struct live_span *span, int row)
{
	struct line line = line_in(canvas->frame, canvas->area, row);
	double seconds = (double)(canvas->view->now->t_ns - span->begin_ns) * 1e-9;
	line_column(&line, pen_plain, figure_span(fmax(seconds, 0)).text, 9, true);
	line_blank(&line, 1);
	line_column(&line, pen_faint, figure_count(span->pid).text, 7, true);
	line_blank(&line, 1 + 2 * (span->depth < 12 ? span->depth : 12));
	line_text(&line, pen_plain, span->name);
	if (span->tid != 0 && span->tid != span->pid && span->depth == 0)
		line_printf(&line, pen_faint, "  thread %lld", (long long)span->tid);
}

void panel_spans(const struct canvas *canvas)
{
	const struct live_run *run = canvas->view->run;
	if (run == NULL)
		return;
	draw_title(canvas);
	size_t capacity = (size_t)canvas->area.height - 1;
	// A row for the remaining spans is useful if several rows fit; the title shows the total anyway.
	bool has_rest = (size_t)run->spans_open > capacity && capacity > 2;
	size_t shown = capacity - has_rest < run->n_spans ? capacity - has_rest : run->n_spans;
	for (size_t i = 0; i < shown; i++)
		draw_span(canvas, &run->spans[i], (int)i + 1);
	if (has_rest) {
		struct line line = line_in(canvas->frame, canvas->area, (int)shown + 1);
		line_blank(&line, 18);
		line_printf(&line, pen_faint, "%lld more", (long long)run->spans_open - (long long)shown);
	}
}
