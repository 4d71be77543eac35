/* Charts of several runs on one axis, aligned at their starts, whatever the clock time. Each run is a series. No detail
 * is lost, because the bucket edges are the union of all runs' edges. Pure. */
#pragma once

#include "analysis/chart/chart.h"

struct chart_member {
	const char *name;
	const struct charts *charts; // NULL: no charts; the run keeps its index
};

/* Power of the machine, cumulative energy, and power, cores and memory of the program, each with a series per run that
 * has it: named after its member, with a `device` named "run-N" for index N. Borrows names; charts->findings is that of
 * the first run with charts. -ENOMEM. */
int charts_merge_runs(const struct chart_member *members, size_t n_members, struct charts *ret_charts);
