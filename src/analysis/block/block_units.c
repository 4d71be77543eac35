#include "analysis/block/block_work.h"

#include "base/search.h"
#include "base/util.h"

#include <errno.h>

static bool ids_ascend(const struct run *run)
{
	for (size_t i = 1; i < run->n_spans; i++)
		if (run->spans[i].id <= run->spans[i - 1].id)
			return false;
	return true;
}

static int number_ids(struct blocks_work *work)
{
	const struct run *run = work->run;
	work->units.ascending = ids_ascend(run);
	for (size_t i = 0; i < run->n_spans && !work->units.ascending; i++)
		if (keys_number(&work->units.ids, (uint64_t)run->spans[i].id) == KEYS_NONE)
			return -ENOMEM;
	return 0;
}

static int by_time(const void *a, const void *b, void *data)
{
	const struct run_user_metric *metrics = data;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	if (metrics[i].t_ns != metrics[k].t_ns)
		return metrics[i].t_ns < metrics[k].t_ns ? -1 : 1;
	return (i > k) - (i < k);
}

int units_init(struct blocks_work *work)
{
	const struct run *run = work->run;
	struct units *units = &work->units;
	if (run->n_user_metrics == 0)
		return 0;
	units->n = run->n_user_metrics;
	units->order = arena_alloc(work->arena, units->n, sizeof(*units->order));
	units->counted = arena_alloc(work->arena, work->names.n, sizeof(*units->counted));
	if (units->order == NULL || units->counted == NULL || number_ids(work) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < units->n; i++)
		units->order[i] = (uint32_t)i;
	qsort_r(units->order, units->n, sizeof(*units->order), by_time, run->user_metrics);
	return names_make(&run->user_metrics[0].name, sizeof(run->user_metrics[0]), units->n, work->arena,
		&units->names);
}

bool units_left(const struct blocks_work *work)
{
	return work->units.next < work->units.n;
}

int64_t units_next_ns(const struct blocks_work *work)
{
	return work->run->user_metrics[work->units.order[work->units.next]].t_ns;
}

/* ---- the blocks in which a metric was reported ---- */

static bool is_span_before(const void *item, const void *id)
{
	return ((const struct run_span *)item)->id < *(const int64_t *)id;
}

static size_t find_ascending(const struct run *run, int64_t id)
{
	int64_t guess;
	if (!__builtin_sub_overflow(id, run->spans[0].id, &guess) && guess >= 0 && (uint64_t)guess < run->n_spans &&
		run->spans[guess].id == id)
		return (size_t)guess; // ids without gaps
	size_t at = search_first(run->spans, run->n_spans, sizeof(*run->spans), &id, is_span_before);
	return at < run->n_spans && run->spans[at].id == id ? at : SIZE_MAX;
}

static size_t find_span(const struct blocks_work *work, int64_t id)
{
	if (id == 0 || !value_ok(id))
		return SIZE_MAX;
	if (work->units.ascending)
		return find_ascending(work->run, id);
	uint32_t number = keys_find(&work->units.ids, (uint64_t)id);
	return number != KEYS_NONE ? number : SIZE_MAX;
}

struct metric_counting {
	struct blocks_work *work;
	uint32_t metric;
	int r;
};

// Counts the metric once per block, even if the block is in the stack several times.
static void count_metric(struct metric_counting *counting, uint32_t block)
{
	struct units *units = &counting->work->units;
	double value = counting->work->run->user_metrics[counting->metric].value;
	if (units->counted[block] == counting->metric + 1 || isnan(value))
		return;
	units->counted[block] = counting->metric + 1;
	uint32_t met = units->keys.n, name = units->names.of[counting->metric];
	uint32_t n = keys_number(&units->keys, keys_pair(block, name));
	struct unit_sum *sums = array_reserve(units->sums, met, &units->capacity, sizeof(*sums), 16);
	if (n == KEYS_NONE || sums == NULL) {
		counting->r = -ENOMEM;
		return;
	}
	units->sums = sums;
	if (n == met)
		sums[n] = (struct unit_sum){.block = block, .name = name, .whole = true};
	sums[n].count++;
	sums[n].sum += value;
	sums[n].whole &= value >= 0 && isfinite(value) && value == floor(value);
}

// Follows the spans' parent links. A parent must precede its child, so that cycles end.
static void count_in_links(struct metric_counting *counting, size_t number)
{
	const struct blocks_work *work = counting->work;
	for (int depth = 0; depth <= STACK_DEPTH_MAX; depth++) {
		const struct run_span *span = &work->run->spans[number];
		if (block_has_ended(span))
			count_metric(counting, work->names.of[number]);
		size_t parent = find_span(work, span->parent);
		if (parent >= number) // includes SIZE_MAX
			return;
		number = parent;
	}
}

static void count_in_stack(struct metric_counting *counting, uint32_t index)
{
	const struct open_span *open = counting->work->open;
	for (int depth = 0; depth <= STACK_DEPTH_MAX && index != BLOCK_NONE; depth++, index = open[index].below)
		count_metric(counting, open[index].block);
}

// Whether a span's parent links lead to the span with this number.
static bool is_linked_inside(const struct blocks_work *work, size_t span, size_t number)
{
	for (int depth = 0; depth <= STACK_DEPTH_MAX && span > number && span != SIZE_MAX; depth++)
		span = find_span(work, work->run->spans[span].parent);
	return span == number;
}

/* A thread can have spans of several sources (libwattle, NVTX, ITT), and parent links stay within one source. Spans
 * below the metric's span in the thread's stack enclose it too, and so do spans above it without a link to it. */
static void count_in_other_sources(struct metric_counting *counting, size_t number)
{
	const struct blocks_work *work = counting->work;
	const struct run_span *span = &work->run->spans[number];
	uint32_t thread = keys_find(&work->thread_keys, keys_pair((uint32_t)span->pid, (uint32_t)span->tid));
	uint32_t top = thread != KEYS_NONE ? work->threads[thread].top : BLOCK_NONE, index = top;
	while (index != BLOCK_NONE && work->open[index].span != number)
		index = work->open[index].below;
	if (index == BLOCK_NONE)
		return;
	count_in_stack(counting, work->open[index].below);
	int64_t t_ns = work->run->user_metrics[counting->metric].t_ns;
	for (uint32_t above = top; above != index; above = work->open[above].below) {
		const struct open_span *open = &work->open[above];
		bool surely = work->run->spans[open->span].begin_ns < t_ns && t_ns < open->end_ns;
		if (surely && !is_linked_inside(work, open->span, number))
			count_metric(counting, open->block);
	}
}

// Finds blocks by time. A metric without a thread can belong to any thread, and spans without a thread match any
// metric.
static void count_in_threads(struct metric_counting *counting, int32_t pid, int32_t tid)
{
	const struct blocks_work *work = counting->work;
	const uint64_t exact[] = {keys_pair((uint32_t)pid, (uint32_t)tid), keys_pair((uint32_t)pid, 0)};
	for (size_t i = 0; i < ARRAY_SIZE(exact) && pid != 0 && tid != 0; i++) {
		uint32_t thread = keys_find(&work->thread_keys, exact[i]);
		if (thread != KEYS_NONE)
			count_in_stack(counting, work->threads[thread].top);
	}
	for (size_t i = 0; i < work->thread_keys.n && (pid == 0 || tid == 0); i++)
		if (pid == 0 || work->threads[i].pid == pid)
			count_in_stack(counting, work->threads[i].top);
}

// Ranges enclose everything that their process does.
static void count_in_ranges(struct metric_counting *counting, int32_t pid)
{
	const struct blocks_work *work = counting->work;
	uint32_t process = keys_find(&work->process_keys, (uint32_t)pid);
	if (pid != 0 && process != KEYS_NONE)
		count_in_stack(counting, work->processes[process].last_range);
	for (size_t i = 0; i < work->process_keys.n && pid == 0; i++)
		count_in_stack(counting, work->processes[i].last_range);
}

int units_count_next(struct blocks_work *work)
{
	struct metric_counting counting = {.work = work, .metric = work->units.order[work->units.next++]};
	const struct run_user_metric *metric = &work->run->user_metrics[counting.metric];
	size_t span = find_span(work, metric->span);
	if (span != SIZE_MAX) {
		count_in_links(&counting, span);
		count_in_other_sources(&counting, span);
	} else {
		count_in_threads(&counting, metric->pid, metric->tid);
	}
	count_in_ranges(&counting, metric->pid);
	return counting.r;
}

/* ---- findings ---- */

static int by_block_and_name(const void *a, const void *b)
{
	const struct unit_sum *x = a, *y = b;
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static struct block_unit unit(const struct blocks_work *work, const struct unit_sum *sum,
	const struct block_finding *block)
{
	bool of_work = sum->whole && sum->sum > 0;
	return (struct block_unit){
		.name = work->units.names.text[sum->name],
		.count = sum->count,
		.sum = sum->sum,
		.j_per_unit = of_work ? block->total_j / sum->sum : (double)NAN,
		.error_j_per_unit = of_work ? block->error_j / sum->sum : (double)NAN,
	};
}

int units_finish(struct blocks_work *work, struct findings *findings)
{
	struct units *units = &work->units;
	size_t n = units->keys.n;
	struct block_unit *all = arena_alloc(findings->arena, n, sizeof(*all));
	if (all == NULL)
		return -ENOMEM;
	if (n > 0)
		qsort(units->sums, n, sizeof(*units->sums), by_block_and_name);
	for (size_t i = 0; i < n; i++) {
		struct block_finding *block = &findings->blocks[units->sums[i].block];
		all[i] = unit(work, &units->sums[i], block);
		if (block->n_units++ == 0)
			block->units = &all[i];
	}
	return 0;
}
