#include "analysis/chart/builder.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"

#include <errno.h>

enum { BUCKETS_DEFAULT = 4000 };

static int make(struct chart_work *work, const struct chart_limits *limits)
{
	static int (*const all[])(struct chart_work *) = {chart_power, chart_cpu, chart_memory, chart_gpus,
		chart_processes, chart_metrics, chart_bands, chart_marks, chart_block_colors};
	size_t most = limits != NULL && limits->buckets > 0 ? limits->buckets : BUCKETS_DEFAULT;
	if (axis_make(work, most) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i](work) < 0)
			return -ENOMEM;
	return chart_lanes(work, limits);
}

int charts_make(const struct findings *findings, const struct chart_limits *limits, struct charts *ret_charts)
{
	if (findings->metering == NULL)
		return -EINVAL;
	struct charts charts = {.findings = findings, .arena = arena_new()};
	struct chart_work work = {.findings = findings,
		.run = findings->run,
		.charts = &charts,
		.arena = charts.arena,
		.scratch = arena_new(),
		.hole_ns = curve_hole_ns(run_metadata_i64(findings->run, META_KEY_INTERVAL))};
	int r = charts.arena != NULL && work.scratch != NULL ? make(&work, limits) : -ENOMEM;
	arena_free(work.scratch);
	if (r < 0)
		charts_finish(&charts);
	else
		*ret_charts = charts;
	return r;
}

void charts_finish(struct charts *charts)
{
	arena_free(charts->arena);
	*charts = (struct charts){0};
}

const struct chart *charts_find(const struct charts *charts, const char *id)
{
	for (size_t i = 0; i < charts->n_charts; i++)
		if (strcmp(charts->charts[i].id, id) == 0)
			return &charts->charts[i];
	return NULL;
}
