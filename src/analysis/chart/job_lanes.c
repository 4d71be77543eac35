/* One lane per rank: the innermost blocks of the thread with most time in blocks, over all recordings of the rank.
 * Items too short to be visible are merged with their neighbours. */
#include "analysis/chart/job.h"

#include "base/util.h"

#include <errno.h>

enum { ITEMS_MAX = 60000, ITEMS_MIN = 200, LANES_MAX = 256, DEPTH_MAX = 64 };

struct lane_maker {
	const struct job_findings *job;
	struct job_charts *out;
	struct arena *arena;
	struct chart_lane *lane;
	size_t capacity;
	double min_s; // shorter items are merged
	size_t run;   // index of the run whose spans are drawn
};

/* ---- choice of the thread ---- */

struct thread_time {
	int32_t pid, tid;
	int64_t ns;
};

static bool is_drawn(const struct run_span *span)
{
	return span->kind == SPAN_NESTED && value_ok(span->end_ns) && span->end_ns > span->begin_ns;
}

static bool is_outermost(const struct run_span *span)
{
	return !value_ok(span->parent) || span->parent == 0;
}

// By the time in outermost spans. Few threads have any; threads beyond the table are ignored.
static struct thread_time busiest_thread(const struct run *run)
{
	struct thread_time threads[64];
	size_t n = 0, best = 0;
	for (size_t i = 0; i < run->n_spans; i++) {
		const struct run_span *span = &run->spans[i];
		size_t k = 0;
		if (!is_drawn(span) || !is_outermost(span))
			continue;
		while (k < n && (threads[k].pid != span->pid || threads[k].tid != span->tid))
			k++;
		if (k == ARRAY_SIZE(threads))
			continue;
		if (k == n)
			threads[n++] = (struct thread_time){span->pid, span->tid, 0};
		threads[k].ns += span->end_ns - span->begin_ns;
		best = threads[k].ns > threads[best].ns ? k : best;
	}
	return n > 0 ? threads[best] : (struct thread_time){0, 0, 0};
}

/* ---- items ---- */

static void put(struct lane_maker *m, int64_t from_ns, int64_t to_ns, const char *name, bool is_begin)
{
	struct chart_lane *lane = m->lane;
	double from_s = job_time_s(m->job, m->run, from_ns), to_s = job_time_s(m->job, m->run, to_ns);
	struct chart_item *last = lane->n_items > 0 ? &lane->items[lane->n_items - 1] : NULL;
	if (!(to_s > from_s))
		return;
	from_s = last != NULL ? fmax(from_s, last->to_s) : from_s;
	bool is_short = to_s - from_s < m->min_s;
	bool joins = last != NULL && from_s - last->to_s < m->min_s;
	uint32_t block = findings_block(&m->job->total, name);
	bool is_same = last != NULL && last->block == block && is_short;
	if (joins && (is_same || (is_short && last->to_s - last->from_s < m->min_s) || lane->n_items == m->capacity)) {
		// The longer one gives the name.
		if (to_s - from_s > last->to_s - last->from_s)
			last->block = block;
		last->to_s = to_s;
		last->count += is_begin;
		return;
	}
	if (lane->n_items == m->capacity)
		return;
	lane->items[lane->n_items++] = (struct chart_item){.from_s = from_s,
		.to_s = to_s,
		.block = block,
		.count = 1,
		.energy_j = (double)NAN,
		.span = SIZE_MAX};
}

static int by_begin(const void *a, const void *b)
{
	const struct run_span *x = *(const struct run_span *const *)a, *y = *(const struct run_span *const *)b;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns); // outer spans first
}

struct open_block {
	const struct run_span *span;
	int64_t from_ns; // drawn up to here
	bool any;
};

static void draw_upto(struct lane_maker *m, struct open_block *open, int64_t to_ns)
{
	int64_t end_ns = to_ns < open->span->end_ns ? to_ns : open->span->end_ns;
	if (end_ns > open->from_ns) {
		put(m, open->from_ns, end_ns, open->span->name, !open->any);
		open->from_ns = end_ns;
		open->any = true;
	}
}

// The spans are sorted by begin, outer before inner.
static void walk(struct lane_maker *m, const struct run_span *const *spans, size_t n)
{
	struct open_block open[DEPTH_MAX];
	size_t depth = 0;
	for (size_t i = 0; i <= n; i++) {
		int64_t now_ns = i < n ? spans[i]->begin_ns : INT64_MAX;
		while (depth > 0) {
			draw_upto(m, &open[depth - 1], now_ns);
			if (open[depth - 1].span->end_ns > now_ns)
				break;
			int64_t end_ns = open[--depth].span->end_ns;
			if (depth > 0 && open[depth - 1].from_ns < end_ns)
				open[depth - 1].from_ns = end_ns;
		}
		if (i < n && depth < DEPTH_MAX)
			open[depth++] = (struct open_block){spans[i], spans[i]->begin_ns, false};
	}
}

static int add_run(struct lane_maker *m, size_t number)
{
	const struct run *run = &m->job->runs->runs[number].run;
	struct thread_time thread = busiest_thread(run);
	size_t n = 0;
	if (thread.ns == 0)
		return 0;
	const struct run_span **spans = calloc_array(run->n_spans, sizeof(*spans));
	if (spans == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_spans; i++)
		if (is_drawn(&run->spans[i]) && run->spans[i].pid == thread.pid && run->spans[i].tid == thread.tid)
			spans[n++] = &run->spans[i];
	qsort(spans, n, sizeof(*spans), by_begin);
	m->run = number;
	m->lane->n_spans += n;
	walk(m, spans, n);
	free(spans);
	return 0;
}

/* ---- lanes ---- */

static const char *rank_label(struct arena *arena, const struct job_rank *rank, size_t number)
{
	return value_ok(rank->rank) ? arena_printf(arena, "rank %lld", (long long)rank->rank)
				    : arena_printf(arena, "run %zu", number + 1);
}

static double run_start_s(const struct lane_maker *m, size_t run)
{
	const struct run *r = &m->job->runs->runs[run].run;
	return r->n_segments > 0 ? job_time_s(m->job, run, r->segments[0].start_ns) : (double)NAN;
}

// The rank's first recording that began after `after_s`; n: none.
static size_t next_run(const struct lane_maker *m, size_t rank, double after_s)
{
	size_t n = m->job->runs->n, next = n;
	for (size_t i = 0; i < n; i++)
		if (job_rank_of(m->job, i) == rank && run_start_s(m, i) > after_s &&
			(next == n || run_start_s(m, i) < run_start_s(m, next)))
			next = i;
	return next;
}

static int add_lane(struct lane_maker *m, size_t number)
{
	const struct job_rank *rank = &m->job->ranks[number];
	struct charts *charts = &m->out->charts;
	m->lane = &charts->lanes[charts->n_lanes];
	*m->lane = (struct chart_lane){.pid = 0, .tid = 0};
	m->lane->title = m->job->nodes[rank->node].name;
	m->lane->label = rank_label(m->arena, rank, number);
	m->lane->items = arena_alloc(m->arena, m->capacity, sizeof(*m->lane->items));
	if (m->lane->items == NULL || m->lane->label == NULL)
		return -ENOMEM;
	for (size_t i = next_run(m, number, -INFINITY); i < m->job->runs->n; i = next_run(m, number, run_start_s(m, i)))
		if (add_run(m, i) < 0)
			return -ENOMEM;
	charts->n_items += m->lane->n_items;
	charts->n_spans += m->lane->n_spans;
	charts->n_lanes += m->lane->n_items > 0;
	return 0;
}

int chart_job_lanes(const struct job_findings *job, struct job_charts *charts)
{
	size_t shown = job->n_ranks < LANES_MAX ? job->n_ranks : LANES_MAX;
	struct lane_maker m = {.job = job, .out = charts, .arena = charts->charts.arena};
	if (shown == 0)
		return 0;
	m.capacity = ITEMS_MAX / shown > ITEMS_MIN ? ITEMS_MAX / shown : ITEMS_MIN;
	m.min_s = charts->charts.axis.length_s / (double)m.capacity;
	charts->lanes_left_out = job->n_ranks - shown;
	charts->charts.lanes = arena_alloc(m.arena, shown, sizeof(*charts->charts.lanes));
	if (charts->charts.lanes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < shown; i++)
		if (!job->ranks[i].nested && add_lane(&m, i) < 0)
			return -ENOMEM;
	return 0;
}
