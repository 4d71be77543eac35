/* A node's charts are those of its findings, as for a single run; here they are resampled to the job's axis. A bucket's
 * mean is the node's energy in it divided by its length, so that the area stays the energy. */
#include "analysis/chart/job.h"

#include "base/nan_sum.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>

enum { BUCKETS_MAX = 2000, COLUMNS = 240 };

struct bucket_grid { // equal buckets to which a node is resampled
	double *w;   // n entries
	size_t n;
	double length_s;
};

struct job_work {
	const struct job_findings *job;
	struct job_charts *out;
	struct arena *arena;
	double *part_w;           // one row of the axis' buckets per part
	size_t *part_of;          // per node: index of its part
	struct run_device *parts; // pictures choose each part's colour by its index
	size_t n_parts;
};

/* ---- the axis ---- */

static double job_length_s(const struct job_findings *job)
{
	double length_s = 0;
	for (size_t i = 0; i < job->n_ranks; i++)
		length_s = fmax(length_s, job->ranks[i].end_s); // fmax skips NaN
	for (size_t i = 0; i < job->n_nodes; i++)
		length_s = fmax(length_s, job->nodes[i].to_s);
	return length_s;
}

static int make_axis(struct job_work *work)
{
	struct chart_axis *axis = &work->out->charts.axis;
	double length_s = job_length_s(work->job);
	if (!(length_s > 0))
		return 0;
	int64_t most = 1;
	for (size_t i = 0; i < work->job->n_ranks; i++)
		if (work->job->ranks[i].findings != NULL && work->job->ranks[i].findings->samples > most)
			most = work->job->ranks[i].findings->samples;
	axis->n = most < BUCKETS_MAX ? (size_t)most : BUCKETS_MAX;
	axis->length_s = length_s;
	axis->n_segments = 1;
	axis->segments = arena_alloc(work->arena, 1, sizeof(*axis->segments));
	double *edges = arena_alloc(work->arena, axis->n + 1, sizeof(*edges));
	if (axis->segments == NULL || edges == NULL)
		return -ENOMEM;
	for (size_t i = 0; i <= axis->n; i++)
		edges[i] = length_s * (double)i / (double)axis->n;
	axis->from_s = edges;
	axis->to_s = edges + 1;
	axis->segments[0] = (struct chart_segment){.to_s = length_s, .wall_start_ns = work->job->start_wall_ns};
	return 0;
}

/* ---- resampling a node ---- */

static void add_interval(const struct bucket_grid *grid, double from_s, double to_s, double power_w)
{
	double bucket_s = grid->length_s / (double)grid->n;
	if (isnan(power_w) || isnan(from_s) || !(to_s > 0) || !(from_s < grid->length_s))
		return;
	for (size_t i = (size_t)(fmax(from_s, 0) / bucket_s); i < grid->n && (double)i * bucket_s < to_s; i++) {
		double inside_s = fmin(to_s, (double)(i + 1) * bucket_s) - fmax(from_s, (double)i * bucket_s);
		if (inside_s > 0)
			grid->w[i] = nan_sum(grid->w[i], power_w * inside_s / bucket_s);
	}
}

static double segment_shift_s(const struct job_work *work, const struct job_node *node, const struct charts *charts,
	double at_s)
{
	const struct chart_axis *axis = &charts->axis;
	const struct chart_segment *segment = &axis->segments[0];
	for (size_t s = 1; s < axis->n_segments && axis->segments[s].from_s <= at_s; s++)
		segment = &axis->segments[s];
	if (!value_ok(segment->wall_start_ns) || !value_ok(work->job->start_wall_ns))
		return node->from_s;
	return (double)(segment->wall_start_ns - work->job->start_wall_ns) / 1e9 - segment->from_s;
}

static const struct chart_series *whole_of(const struct charts *charts)
{
	const struct chart *power = charts_find(charts, "power");
	for (size_t i = 0; power != NULL && i < power->n_series; i++)
		if (power->series[i].line == CHART_WHOLE)
			return &power->series[i];
	return NULL;
}

static void add_node(const struct job_work *work, size_t node, const struct charts *charts)
{
	const struct chart_axis *own = &charts->axis, *axis = &work->out->charts.axis;
	const struct chart_series *whole = whole_of(charts);
	const struct bucket_grid part = {work->part_w + work->part_of[node] * axis->n, axis->n, axis->length_s};
	const struct bucket_grid row = {work->out->node_w + node * COLUMNS, COLUMNS, axis->length_s};
	for (size_t i = 0; whole != NULL && i < own->n; i++) {
		double shift_s = segment_shift_s(work, &work->job->nodes[node], charts,
			(own->from_s[i] + own->to_s[i]) / 2);
		add_interval(&part, own->from_s[i] + shift_s, own->to_s[i] + shift_s, whole->mean[i]);
		add_interval(&row, own->from_s[i] + shift_s, own->to_s[i] + shift_s, whole->mean[i]);
	}
}

static int add_nodes(const struct job_work *work)
{
	const struct chart_limits limits = {.buckets = BUCKETS_MAX, .items = 1, .lanes = 1};
	for (size_t i = 0; i < work->job->n_nodes; i++) {
		const struct findings *f = work->job->nodes[i].findings;
		struct charts charts;
		if (f == NULL || f->n_domains == 0)
			continue;
		if (charts_make(f, &limits, &charts) < 0)
			return -ENOMEM;
		add_node(work, i, &charts);
		charts_finish(&charts);
	}
	return 0;
}

/* ---- parts of nodes ---- */

static size_t nodes_before(const struct job_findings *job, size_t node)
{
	size_t n = 0;
	double own_j = job->nodes[node].energy_j;
	for (size_t i = 0; i < job->n_nodes; i++) {
		double other_j = job->nodes[i].energy_j;
		n += other_j > own_j || (!isnan(other_j) && isnan(own_j)) || (other_j == own_j && i < node);
	}
	return n;
}

static int choose_parts(struct job_work *work)
{
	const struct job_findings *job = work->job;
	bool all = job->n_nodes <= JOB_PARTS_MAX;
	size_t chosen = 0;
	work->n_parts = all ? job->n_nodes : JOB_PARTS_MAX;
	work->part_of = arena_alloc(work->arena, job->n_nodes, sizeof(*work->part_of));
	work->parts = arena_alloc(work->arena, work->n_parts, sizeof(*work->parts));
	if (work->part_of == NULL || work->parts == NULL)
		return -ENOMEM;
	for (size_t p = 0; p < work->n_parts; p++) {
		work->parts[p].index = (int)p;
		snprintf(work->parts[p].name, sizeof(work->parts[p].name), "part-%zu", p);
	}
	for (size_t i = 0; i < job->n_nodes; i++)
		work->part_of[i] = all || nodes_before(job, i) < JOB_PARTS_MAX - 1 ? chosen++ : JOB_PARTS_MAX - 1;
	return 0;
}

static const char *part_name(const struct job_work *work, size_t part)
{
	char rest[48];
	if (work->job->n_nodes > JOB_PARTS_MAX && part == JOB_PARTS_MAX - 1) {
		snprintf(rest, sizeof(rest), "%zu other nodes", work->job->n_nodes - JOB_PARTS_MAX + 1);
		return arena_text(work->arena, rest);
	}
	for (size_t i = 0; i < work->job->n_nodes; i++)
		if (work->part_of[i] == part)
			return work->job->nodes[i].name;
	return NULL;
}

/* ---- the chart ---- */

static void extremes(struct chart_series *series, size_t n)
{
	series->highest = series->lowest = (double)NAN;
	for (size_t i = 0; i < n; i++) {
		series->highest = fmax(series->highest, series->mean[i]);
		series->lowest = fmin(series->lowest, series->mean[i]);
	}
}

// The weakest provenance of the part's nodes.
static enum provenance provenance_of(const struct job_work *work, size_t part)
{
	enum provenance weakest = PROVENANCE_MEASURED;
	for (size_t i = 0; i < work->job->n_nodes; i++)
		if (work->part_of[i] == part && work->job->nodes[i].provenance > weakest)
			weakest = work->job->nodes[i].provenance;
	return weakest;
}

static void add_series(struct chart *chart, const struct chart_series *like, double *mean, size_t n)
{
	struct chart_series *series = &chart->series[chart->n_series];
	*series = *like;
	series->mean = series->low = series->high = mean;
	extremes(series, n);
	if (!isnan(series->highest) && series->name != NULL)
		chart->n_series++;
}

static int make_chart(struct job_work *work)
{
	struct charts *charts = &work->out->charts;
	size_t n = charts->axis.n;
	double *sum = arena_alloc(work->arena, n, sizeof(*sum));
	charts->charts = arena_alloc(work->arena, 1, sizeof(*charts->charts));
	struct chart_series *series = arena_alloc(work->arena, work->n_parts + 1, sizeof(*series));
	if (sum == NULL || charts->charts == NULL || series == NULL)
		return -ENOMEM;
	struct chart *chart = charts->charts;
	*chart = (struct chart){.id = "power", .title = "Power", .unit = "w", .style = CHART_STACKED, .series = series};
	chart->ceiling = (double)NAN;
	for (size_t p = 0; p < work->n_parts; p++) {
		const char *name = part_name(work, p);
		add_series(chart,
			&(struct chart_series){.name = name,
				.label = name,
				.line = CHART_PART,
				.provenance = provenance_of(work, p),
				.device = &work->parts[p]},
			work->part_w + p * n, n);
	}
	for (size_t i = 0; i < n; i++) {
		sum[i] = (double)NAN;
		for (size_t p = 0; p < work->n_parts; p++)
			sum[i] = nan_sum(sum[i], work->part_w[p * n + i]);
	}
	if (chart->n_series > 1)
		add_series(chart,
			&(struct chart_series){.name = "job",
				.label = "all nodes",
				.line = CHART_WHOLE,
				.provenance = work->job->total.provenance},
			sum, n);
	charts->n_charts = chart->n_series > 0;
	return 0;
}

static double *unknown(struct arena *arena, size_t n, size_t m)
{
	double *values = arena_alloc(arena, n * m, sizeof(*values));
	for (size_t i = 0; values != NULL && i < n * m; i++)
		values[i] = (double)NAN;
	return values;
}

// The blocks with most time have different colours.
static int make_block_colors(struct job_work *work)
{
	const struct findings *f = &work->job->total;
	uint8_t *block_colors = arena_alloc(work->arena, f->n_blocks, sizeof(*block_colors));
	if (block_colors == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_blocks; i++) {
		size_t before = 0;
		for (size_t k = 0; k < f->n_blocks; k++) {
			double own_s = f->blocks[i].self_time_s, other_s = f->blocks[k].self_time_s;
			before += other_s > own_s || (other_s == own_s && k < i);
		}
		block_colors[i] = (uint8_t)(before % CHART_BLOCK_COLORS);
	}
	work->out->charts.block_colors = block_colors;
	return 0;
}

static int make(struct job_work *work)
{
	struct job_charts *out = work->out;
	if (make_axis(work) < 0 || make_block_colors(work) < 0)
		return -ENOMEM;
	if (out->charts.axis.n == 0)
		return 0;
	if (choose_parts(work) < 0)
		return -ENOMEM;
	work->part_w = unknown(work->arena, work->n_parts, out->charts.axis.n);
	out->node_w = unknown(work->arena, work->job->n_nodes, COLUMNS);
	out->n_columns = COLUMNS;
	if (work->part_w == NULL || out->node_w == NULL || add_nodes(work) < 0 || make_chart(work) < 0)
		return -ENOMEM;
	out->highest_w = (double)NAN;
	for (size_t i = 0; i < work->job->n_nodes * COLUMNS; i++)
		out->highest_w = fmax(out->highest_w, out->node_w[i]);
	return chart_job_lanes(work->job, out);
}

int charts_of_job(const struct job_findings *job, struct job_charts *ret_charts)
{
	struct job_charts charts = {.charts = {.findings = &job->total, .arena = arena_new()}};
	struct job_work work = {.job = job, .out = &charts, .arena = charts.charts.arena};
	int r = work.arena != NULL ? make(&work) : -ENOMEM;
	if (r < 0)
		charts_of_job_finish(&charts);
	else
		*ret_charts = charts;
	return r;
}

void charts_of_job_finish(struct job_charts *charts)
{
	charts_finish(&charts->charts);
	*charts = (struct job_charts){0};
}
