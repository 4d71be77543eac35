#include "serve/view.h"

static void write(const struct view *view, enum om_format format, bool is_textfile, struct buf *out)
{
	const struct metrics_options options = {
		.format = format,
		.has_target = view->has_target,
		.seed_names = view->seed_names,
		.opened_wall_ns = view->opened_wall_ns,
		.node = view->node,
		.is_textfile = is_textfile,
	};
	metrics_write(view->now, view->totals, &options, out);
}

void view_metrics(const struct view *view, bool openmetrics, struct buf *out)
{
	write(view, openmetrics ? OM_OPENMETRICS : OM_CLASSIC, false, out);
}

void view_textfile(const struct view *view, struct buf *out)
{
	write(view, OM_CLASSIC, true, out);
}
