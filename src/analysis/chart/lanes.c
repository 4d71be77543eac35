// Spans as lanes: by process and thread, one lane for each nesting depth.
#include "analysis/chart/lanes.h"

#include "analysis/energy/timeline.h"
#include "base/util.h"

#include <errno.h>

enum { ITEMS_DEFAULT = 100000, LANES_DEFAULT = 200 };

/* ---- sort order ---- */

// Processes and threads in the order of their first span; ranges of a process after its threads.
static int by_begin(const void *a, const void *b)
{
	const struct lane_span *x = a, *y = b;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns > y->begin_ns ? 1 : -1;
	return (x->span > y->span) - (x->span < y->span);
}

static int by_lane(const void *a, const void *b)
{
	const struct lane_span *x = a, *y = b;
	if (x->process != y->process)
		return x->process > y->process ? 1 : -1;
	if (x->thread != y->thread)
		return x->thread > y->thread ? 1 : -1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns > y->begin_ns ? 1 : -1;
	if (x->end_ns != y->end_ns) // outer spans first
		return x->end_ns < y->end_ns ? 1 : -1;
	return (x->span > y->span) - (x->span < y->span);
}

// An open span extends to the end of the segment in which it began, and at least to its own begin.
static int64_t end_of(const struct run *run, const struct run_span *span)
{
	int64_t end_ns = span->end_ns;
	if (!value_ok(end_ns)) {
		end_ns = span->begin_ns;
		for (size_t s = 0; s < run->n_segments; s++)
			if (s == 0 || run->segments[s].start_ns <= span->begin_ns)
				end_ns = run->segments[s].end_ns;
	}
	return end_ns > span->begin_ns ? end_ns : span->begin_ns;
}

static int number_threads(struct lane_span *spans, size_t n, const struct run *run)
{
	struct keys processes = {0}, threads = {0};
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct run_span *span = &run->spans[spans[i].span];
		spans[i].process = keys_number(&processes, (uint32_t)span->pid);
		spans[i].thread = LANE_RANGES;
		if (span->kind != SPAN_RANGE)
			spans[i].thread = keys_number(&threads, keys_pair((uint32_t)span->pid, (uint32_t)span->tid));
		if (spans[i].process == KEYS_NONE || (span->kind != SPAN_RANGE && spans[i].thread == KEYS_NONE))
			r = -ENOMEM;
	}
	keys_finish(&processes);
	keys_finish(&threads);
	return r;
}

static struct lane_span *order(const struct run *run, struct arena *scratch)
{
	struct lane_span *spans = arena_alloc(scratch, run->n_spans, sizeof(*spans));
	if (spans == NULL)
		return NULL;
	for (size_t i = 0; i < run->n_spans; i++)
		spans[i] = (struct lane_span){.span = (uint32_t)i,
			.begin_ns = run->spans[i].begin_ns,
			.end_ns = end_of(run, &run->spans[i])};
	qsort(spans, run->n_spans, sizeof(*spans), by_begin);
	if (number_threads(spans, run->n_spans, run) < 0)
		return NULL;
	qsort(spans, run->n_spans, sizeof(*spans), by_lane);
	return spans;
}

/* ---- depths ---- */

/* A thread's spans are nested: the depth is the number of open spans. Where spans cross (one that a coroutine began
 * ends later than the enclosing one), the later span is below the others until those have ended. Ranges use the first
 * free lane. */
struct depths {
	int64_t *ends_ns; // one per depth
	size_t n, capacity;
};

static int put(struct depths *depths, size_t depth, int64_t end_ns)
{
	if (depth == depths->n) {
		int64_t *more = array_reserve(depths->ends_ns, depths->n, &depths->capacity, sizeof(*more), 32);
		if (more == NULL)
			return -ENOMEM;
		depths->ends_ns = more;
		depths->n++;
	}
	depths->ends_ns[depth] = end_ns;
	return 0;
}

static size_t free_depth(struct depths *depths, const struct lane_span *span)
{
	size_t depth = 0;
	if (span->thread == LANE_RANGES) {
		while (depth < depths->n && depth < LANE_DEPTH_MAX && depths->ends_ns[depth] > span->begin_ns)
			depth++;
		return depth;
	}
	while (depths->n > 0 && depths->ends_ns[depths->n - 1] <= span->begin_ns)
		depths->n--;
	return depths->n;
}

static int find_depths(struct lane_span *spans, size_t n)
{
	struct depths depths = {0};
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (i == 0 || spans[i].process != spans[i - 1].process || spans[i].thread != spans[i - 1].thread)
			depths.n = 0;
		size_t depth = free_depth(&depths, &spans[i]);
		spans[i].depth = (uint32_t)depth;
		if (depth < LANE_DEPTH_MAX)
			r = put(&depths, depth, spans[i].end_ns);
	}
	free(depths.ends_ns);
	return r;
}

/* ---- lanes ---- */

static const char *process_name(const struct run *run, int32_t pid)
{
	const char *name = NULL; // if a pid was reused, its latest process
	for (size_t i = 0; i < run->n_processes; i++)
		if (run->processes[i].pid == pid)
			name = run->processes[i].command;
	return name;
}

static bool is_same_lane(const struct chart_lane *lane, const struct lane_work *work, const struct lane_span *span)
{
	const struct lane_span *first = &work->spans[work->first_of[lane - work->lanes]];
	return first->process == span->process && first->thread == span->thread && lane->depth == span->depth;
}

// Spans are grouped by thread, so its lanes are the last ones.
static struct chart_lane *lane_of(struct lane_work *work, size_t i)
{
	const struct lane_span *span = &work->spans[i];
	for (size_t k = work->n_lanes; k > work->thread_begin; k--)
		if (is_same_lane(&work->lanes[k - 1], work, span))
			return &work->lanes[k - 1];
	if (work->n_lanes == work->capacity) {
		size_t capacity = work->capacity > 0 ? 2 * work->capacity : 64;
		struct chart_lane *lanes = realloc_array(work->lanes, capacity, sizeof(*lanes));
		if (lanes == NULL)
			return NULL;
		work->lanes = lanes;
		size_t *first_of = realloc_array(work->first_of, capacity, sizeof(*first_of));
		if (first_of == NULL)
			return NULL;
		work->first_of = first_of;
		work->capacity = capacity;
	}
	const struct run_span *of = &work->run->spans[span->span];
	struct chart_lane *lane = &work->lanes[work->n_lanes];
	*lane = (struct chart_lane){.pid = of->pid,
		.tid = span->thread == LANE_RANGES ? 0 : of->tid,
		.depth = span->depth,
		.is_range = span->thread == LANE_RANGES};
	work->first_of[work->n_lanes++] = i;
	return lane;
}

static int count_lanes(struct lane_work *work)
{
	for (size_t i = 0; i < work->n; i++) {
		struct lane_span *span = &work->spans[i];
		if (i == 0 || span->process != span[-1].process || span->thread != span[-1].thread)
			work->thread_begin = work->n_lanes;
		span->lane = UINT32_MAX;
		if (span->depth >= LANE_DEPTH_MAX)
			continue;
		struct chart_lane *lane = lane_of(work, i);
		if (lane == NULL)
			return -ENOMEM;
		span->lane = (uint32_t)(lane - work->lanes);
		lane->n_spans++;
	}
	return 0;
}

static int fill_items(struct lane_work *work, const double *energy_j)
{
	const struct chart_axis *axis = &work->charts->axis;
	struct chart_item *items = arena_alloc(work->charts->arena, work->n, sizeof(*items));
	if (items == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < work->n_lanes; k++) {
		work->lanes[k].items = items;
		items += work->lanes[k].n_spans;
	}
	const char *name = NULL;
	uint32_t block = UINT32_MAX;
	for (size_t i = 0; i < work->n; i++) {
		const struct lane_span *span = &work->spans[i];
		const struct run_span *of = &work->run->spans[span->span];
		if (span->lane == UINT32_MAX)
			continue;
		if (of->name != name) // equal names share one pointer
			block = findings_block(work->charts->findings, name = of->name);
		struct chart_lane *lane = &work->lanes[span->lane];
		lane->items[lane->n_items++] = (struct chart_item){
			.from_s = chart_axis_s(axis, span->begin_ns),
			.to_s = chart_axis_s(axis, span->end_ns),
			.block = block,
			.count = 1,
			.energy_j = energy_j[span->span],
			.span = span->span,
			.is_open = !value_ok(of->end_ns),
		};
	}
	return 0;
}

static int by_thread(const void *a, const void *b, void *data)
{
	const struct lane_work *work = data;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const struct lane_span *p = &work->spans[work->first_of[x]], *q = &work->spans[work->first_of[y]];
	if (p->process != q->process)
		return p->process > q->process ? 1 : -1;
	if (p->thread != q->thread)
		return p->thread > q->thread ? 1 : -1;
	return (p->depth > q->depth) - (p->depth < q->depth);
}

static int by_time(const void *a, const void *b, void *data)
{
	const struct lane_work *work = data;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	if (work->time_s[x] != work->time_s[y])
		return work->time_s[x] < work->time_s[y] ? 1 : -1;
	return (x > y) - (x < y);
}

static double time_of(const struct chart_lane *lane)
{
	double time_s = 0;
	for (size_t i = 0; i < lane->n_items; i++)
		time_s += lane->items[i].to_s - lane->items[i].from_s;
	return time_s;
}

// Keeps the lanes with the most time, in the order of processes, threads and depths.
static int keep_lanes(struct lane_work *work, size_t most, struct arena *scratch)
{
	struct charts *charts = work->charts;
	size_t *order = arena_alloc(scratch, work->n_lanes, sizeof(*order));
	work->time_s = arena_alloc(scratch, work->n_lanes, sizeof(double));
	if (order == NULL || work->time_s == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < work->n_lanes; k++) {
		order[k] = k;
		work->time_s[k] = time_of(&work->lanes[k]);
	}
	size_t n = work->n_lanes < most ? work->n_lanes : most;
	qsort_r(order, work->n_lanes, sizeof(*order), by_time, work);
	qsort_r(order, n, sizeof(*order), by_thread, work);
	charts->lanes = arena_alloc(charts->arena, n, sizeof(*charts->lanes));
	if (charts->lanes == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++) {
		charts->lanes[k] = work->lanes[order[k]];
		charts->lanes[k].process = process_name(work->run, charts->lanes[k].pid);
		charts->n_items += charts->lanes[k].n_items;
	}
	charts->n_lanes = n;
	return 0;
}

static int make(struct lane_work *work, const struct chart_work *chart, const struct chart_limits *limits)
{
	double *energy_j;
	work->spans = order(work->run, chart->scratch);
	if (work->spans == NULL || find_depths(work->spans, work->n) < 0 || count_lanes(work) < 0 ||
		spans_energy(chart->findings, chart->scratch, &energy_j, NULL) < 0 ||
		fill_items(work, energy_j) < 0)
		return -ENOMEM;
	if (keep_lanes(work, limits != NULL && limits->lanes > 0 ? limits->lanes : LANES_DEFAULT, chart->scratch) < 0)
		return -ENOMEM;
	lanes_merge(work->charts, limits != NULL && limits->items > 0 ? limits->items : ITEMS_DEFAULT);
	return 0;
}

int chart_lanes(struct chart_work *chart, const struct chart_limits *limits)
{
	struct lane_work work = {.run = chart->run, .charts = chart->charts, .n = chart->run->n_spans};
	chart->charts->n_spans = work.n;
	if (work.n == 0 || chart->findings->windows->n == 0)
		return 0;
	int r = work.n < UINT32_MAX ? make(&work, chart, limits) : -ENOMEM;
	free(work.lanes);
	free(work.first_of);
	return r;
}
