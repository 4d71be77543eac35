#include "serve/view.h"

#include "serve/metrics.h"

void view_metrics(const struct view *view, bool openmetrics, struct buf *out)
{
	const struct metrics_options options = {
		.format = openmetrics ? OM_OPENMETRICS : OM_CLASSIC,
		.has_target = view->has_target,
		.seed_names = view->seed_names,
		.most_processes = view->most_processes,
		.opened_wall_ns = view->opened_wall_ns,
	};
	metrics_write(view->now, &options, out);
}
