/* A stored run as OpenMetrics with the times of its samples, by the names of `wattle serve`, for backfilling:
 * `promtool tsdb create-blocks-from openmetrics FILE DIR`. Each series carries the label `run`. Prometheus knows whole milliseconds:
 * of samples in one of them the first is written. */
#pragma once

#include "analysis/findings.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

// Whether it is known at what time of day the run was; without that there is nothing to write.
bool openmetrics_run_can(const struct run *run);
/* every_ns: at most one sample of a series in so long, and its last one; 0: all. `more` is called now and then, so that `out` may be
 * passed on and cleared. -ENOMEM. */
int openmetrics_run(const struct findings *findings, int64_t every_ns, struct buf *out, void (*more)(void *data),
	void *data);
