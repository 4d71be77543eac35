/* One look as figures for Prometheus. docs/metrics.md has every family. Pure. */
#pragma once

#include "base/buf.h"
#include "now/now.h"
#include "report/openmetrics.h"
#include "serve/tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct metrics_options {
	enum om_format format;
	bool has_target;        // somebody's tree is marked: its part is told
	bool seed_names;        // AIPowerMeter's five gauges as well
	int64_t opened_wall_ns; // when we started; VALUE_MISSING unknown
	const char *node;       // a label of all; NULL: none
	bool is_textfile;       // stands among another exporter's: no name that is the process's own
};

void metrics_write(const struct now *now, const struct tally *tally, const struct metrics_options *options,
	struct buf *out);

// metrics_seed.c
void metrics_write_seed(const struct now *now, const struct metrics_options *options, struct om *om);
// metrics_processes.c
void metrics_write_processes(const struct pid_table *processes, const struct metrics_options *options, struct om *om);
// metrics_groups.c
void metrics_write_groups(const struct now *now, const struct tally *tally, struct om *om);
