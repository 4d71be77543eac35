#include "serve/view.h"

#include "serve/metrics.h"

void view_metrics(const struct view *view, bool openmetrics, struct buf *out)
{
	const struct metrics_options options = {
		.format = openmetrics ? OM_OPENMETRICS : OM_CLASSIC,
		.has_target = view->has_target,
		.seed_names = view->seed_names,
		.opened_wall_ns = view->now->wall_ns - view->up_ns,
	};
	metrics_write(view->now, &options, out);
}
