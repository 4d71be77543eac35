#include "analysis/chart/merge_runs.h"

#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>

struct merged_charts {
	const struct chart_member *members;
	size_t n;
	struct run_device *places; // "run-0" …: pictures choose each run's colour by these
	struct charts *charts;
};

/* ---- the axis ---- */

static size_t all_edges(const struct merged_charts *t, double *edges)
{
	size_t n = 0;
	for (size_t m = 0; m < t->n; m++) {
		const struct chart_axis *axis = t->members[m].charts != NULL ? &t->members[m].charts->axis : NULL;
		for (size_t i = 0; axis != NULL && i < axis->n; i++) {
			if (edges != NULL) {
				edges[n] = axis->from_s[i];
				edges[n + 1] = axis->to_s[i];
			}
			n += 2;
		}
	}
	return n;
}

// Merges edges that differ only by rounding.
static size_t merge_edges(double *edges, size_t n)
{
	double min_s = n > 0 ? edges[n - 1] * 1e-9 : 0;
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || edges[i] - edges[kept - 1] > min_s)
			edges[kept++] = edges[i];
	return kept;
}

static int make_axis(const struct merged_charts *t)
{
	struct arena *arena = t->charts->arena;
	struct chart_axis *axis = &t->charts->axis;
	size_t n = all_edges(t, NULL);
	double *edges = arena_alloc(arena, n, sizeof(*edges));
	axis->segments = arena_alloc(arena, 1, sizeof(*axis->segments));
	if (edges == NULL || axis->segments == NULL)
		return -ENOMEM;
	all_edges(t, edges);
	qsort(edges, n, sizeof(*edges), compare_doubles);
	n = merge_edges(edges, n);
	axis->n = n > 0 ? n - 1 : 0;
	axis->from_s = edges;
	axis->to_s = n > 0 ? edges + 1 : edges;
	axis->length_s = n > 0 ? edges[n - 1] : 0;
	axis->n_segments = n > 0 ? 1 : 0;
	axis->segments[0] = (struct chart_segment){.to_s = axis->length_s, .wall_start_ns = VALUE_MISSING};
	return 0;
}

/* ---- series ---- */

static const struct chart_series *series_of(const struct charts *charts, const char *id, enum chart_line line)
{
	const struct chart *chart = charts != NULL ? charts_find(charts, id) : NULL;
	for (size_t i = 0; chart != NULL && i < chart->n_series; i++)
		if (chart->series[i].line == line)
			return &chart->series[i];
	return NULL;
}

static struct chart_series *add_series(const struct merged_charts *t, struct chart *chart, size_t member,
	const struct chart_series *like)
{
	size_t n = t->charts->axis.n;
	struct chart_series *series = &chart->series[chart->n_series];
	*series = (struct chart_series){
		.name = t->members[member].name,
		.label = t->members[member].name,
		.line = CHART_PART,
		.provenance = like->provenance,
		.device = &t->places[member],
		.mean = arena_alloc(t->charts->arena, n, sizeof(double)),
		.low = arena_alloc(t->charts->arena, n, sizeof(double)),
		.high = arena_alloc(t->charts->arena, n, sizeof(double)),
		.highest = like->highest,
		.lowest = like->lowest,
	};
	if (series->mean == NULL || series->low == NULL || series->high == NULL)
		return NULL;
	chart->n_series++;
	return series;
}

// Each bucket of the common axis lies within one of the run's own, or after its end.
static void copy_values(const struct chart_axis *axis, const struct chart_axis *own, const struct chart_series *from,
	struct chart_series *to)
{
	size_t k = 0;
	for (size_t i = 0; i < axis->n; i++) {
		double middle_s = (axis->from_s[i] + axis->to_s[i]) / 2;
		while (k < own->n && own->to_s[k] <= middle_s)
			k++;
		bool inside = k < own->n && own->from_s[k] <= middle_s;
		to->mean[i] = inside ? from->mean[k] : (double)NAN;
		to->low[i] = inside ? from->low[k] : (double)NAN;
		to->high[i] = inside ? from->high[k] : (double)NAN;
	}
}

// Integrates power to cumulative energy; unknown intervals add nothing.
static void integrate(const struct chart_axis *axis, struct chart_series *series)
{
	double sum_j = 0;
	series->lowest = 0;
	for (size_t i = 0; i < axis->n; i++) {
		double energy_j = series->mean[i] * (axis->to_s[i] - axis->from_s[i]);
		sum_j += isnan(energy_j) ? 0 : energy_j;
		series->mean[i] = series->low[i] = series->high[i] = isnan(energy_j) ? (double)NAN : sum_j;
	}
	series->highest = sum_j;
}

/* ---- charts ---- */

static const struct {
	struct chart like;
	const char *id; // id of the source chart
	enum chart_line line;
	bool is_sum;
} kinds[] = {
	{{.id = "power", .title = "Power of the machine", .unit = "w"}, "power", CHART_WHOLE, false},
	{{.id = "energy", .title = "Energy of the machine so far", .unit = "j"}, "power", CHART_WHOLE, true},
	{{.id = "program_power", .title = "Power of the program", .unit = "w"}, "power", CHART_TARGET, false},
	{{.id = "program_cpu", .title = "CPU of the program", .unit = "cores"}, "cpu", CHART_TARGET, false},
	{{.id = "program_memory", .title = "Memory of the program", .unit = "bytes"}, "memory", CHART_TARGET, false},
};

static int make_chart(const struct merged_charts *t, size_t kind)
{
	struct chart *chart = &t->charts->charts[t->charts->n_charts];
	*chart = kinds[kind].like;
	chart->style = CHART_LINES;
	chart->ceiling = (double)NAN;
	chart->series = arena_alloc(t->charts->arena, t->n, sizeof(*chart->series));
	if (chart->series == NULL)
		return -ENOMEM;
	for (size_t m = 0; m < t->n; m++) {
		const struct charts *charts = t->members[m].charts;
		const struct chart_series *from = series_of(charts, kinds[kind].id, kinds[kind].line);
		if (from == NULL)
			continue;
		struct chart_series *to = add_series(t, chart, m, from);
		if (to == NULL)
			return -ENOMEM;
		copy_values(&t->charts->axis, &charts->axis, from, to);
		if (kinds[kind].is_sum)
			integrate(&t->charts->axis, to);
	}
	t->charts->n_charts += chart->n_series > 0;
	return 0;
}

static int make(const struct merged_charts *t)
{
	t->charts->charts = arena_alloc(t->charts->arena, ARRAY_SIZE(kinds), sizeof(*t->charts->charts));
	if (t->places == NULL || t->charts->charts == NULL)
		return -ENOMEM;
	for (size_t m = t->n; m-- > 0;)
		if (t->members[m].charts != NULL)
			t->charts->findings = t->members[m].charts->findings;
	for (size_t m = 0; m < t->n; m++) {
		t->places[m].index = (int)m;
		snprintf(t->places[m].name, sizeof(t->places[m].name), "run-%zu", m);
	}
	int r = make_axis(t);
	for (size_t kind = 0; r == 0 && t->charts->axis.n > 0 && kind < ARRAY_SIZE(kinds); kind++)
		r = make_chart(t, kind);
	return r;
}

int charts_merge_runs(const struct chart_member *members, size_t n_members, struct charts *ret_charts)
{
	struct charts charts = {.arena = arena_new()};
	struct merged_charts t = {.members = members, .n = n_members, .charts = &charts};
	if (charts.arena != NULL)
		t.places = arena_alloc(charts.arena, n_members, sizeof(*t.places));
	int r = charts.arena != NULL ? make(&t) : -ENOMEM;
	if (r < 0)
		charts_finish(&charts);
	else
		*ret_charts = charts;
	return r;
}
