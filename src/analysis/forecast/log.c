#include "analysis/forecast/forecast.h"

// Removes every second point except the first and the last, and sets the minimum distance of later points.
static void thin(struct forecast_log *log)
{
	size_t kept = 1;
	for (size_t i = 2; i < log->n; i += 2)
		log->points[kept++] = log->points[i];
	if (log->n % 2 == 0)
		log->points[kept++] = log->points[log->n - 1];
	log->n = kept;
	log->stride = (log->points[kept - 1].steps - log->points[0].steps) / (int64_t)(kept - 1);
}

void forecast_add(struct forecast_log *log, struct forecast_point point)
{
	if (log->n > 0 && point.steps <= log->points[log->n - 1].steps)
		return;
	bool is_near = log->n > 1 && log->points[log->n - 1].steps - log->points[log->n - 2].steps < log->stride;
	if (is_near)
		log->n--;
	log->points[log->n++] = point;
	if (log->n == FORECAST_POINTS)
		thin(log);
}
