/* Charts of several runs as charts of one axis: what began together stands above each other, whatever the clock said. Series are the
 * runs; nothing is lost, because the buckets are cut wherever one of the runs has an edge. Pure. */
#pragma once

#include "analysis/chart/chart.h"

struct chart_member {
	const char *name;
	const struct charts *charts; // NULL: it has none, but keeps its place
};

/* Power of the machine, energy so far, power of the program, its cores and its memory, each with a series a run that has it: named
 * as its member, `device` named "run-N" with N its place. Borrows names; charts->findings is of the first run that has any. -ENOMEM. */
int charts_together(const struct chart_member *members, size_t n_members, struct charts *ret_charts);
