#include "analysis/block/block_work.h"

#include "base/util.h"

#include <errno.h>

/* ---- heap of open spans, the next end first ---- */

struct ends {
	uint32_t *indices; // indices of open spans; owned
	size_t n, capacity;
};

// Of spans that end at the same instant, the one that began last (the innermost) comes first.
static bool ends_before(const struct blocks_work *work, uint32_t a, uint32_t b)
{
	const struct open_span *x = &work->open[a], *y = &work->open[b];
	return x->end_ns != y->end_ns ? x->end_ns < y->end_ns : x->begun > y->begun;
}

static int ends_add(const struct blocks_work *work, struct ends *ends, uint32_t index)
{
	uint32_t *indices = array_reserve(ends->indices, ends->n, &ends->capacity, sizeof(*indices), 64);
	if (indices == NULL)
		return -ENOMEM;
	ends->indices = indices;
	size_t i = ends->n++;
	for (; i > 0 && ends_before(work, index, indices[(i - 1) / 2]); i = (i - 1) / 2)
		indices[i] = indices[(i - 1) / 2];
	indices[i] = index;
	return 0;
}

static uint32_t ends_take(const struct blocks_work *work, struct ends *ends)
{
	uint32_t *indices = ends->indices, first = indices[0], last = indices[--ends->n];
	size_t i = 0;
	for (size_t child; (child = 2 * i + 1) < ends->n; i = child) {
		child += child + 1 < ends->n && ends_before(work, indices[child + 1], indices[child]);
		if (ends_before(work, last, indices[child]))
			break;
		indices[i] = indices[child];
	}
	indices[i] = last;
	return first;
}

/* ---- threads and processes ---- */

// Number of a process's label. Processes missing in the run's table get their pid plus the number of labels; without a
// pid, 0.
static uint32_t label_number(struct blocks_work *work, int32_t pid)
{
	uint32_t known = keys_find(&work->pids, (uint32_t)pid);
	if (known != KEYS_NONE)
		return work->labels.of[work->process_of[known]];
	return (uint32_t)work->labels.n + (pid > 0 ? (uint32_t)pid : 0);
}

static uint32_t process_of(struct blocks_work *work, int32_t pid)
{
	uint32_t known = work->process_keys.n, n = keys_number(&work->process_keys, (uint32_t)pid);
	if (n == KEYS_NONE || n < known)
		return n;
	struct work_process *processes = array_reserve(work->processes, n, &work->processes_capacity,
		sizeof(*processes), 16);
	if (processes == NULL)
		return KEYS_NONE;
	work->processes = processes;
	processes[n] = (struct work_process){.pid = pid,
		.root = paths_root(&work->paths, label_number(work, pid)),
		.last_range = BLOCK_NONE,
		.share_of_ranges.errors = arena_alloc(work->arena, work->findings->n_domains,
			sizeof(struct part_error))};
	return processes[n].root != PATH_NONE && processes[n].share_of_ranges.errors != NULL ? n : KEYS_NONE;
}

static uint32_t thread_of(struct blocks_work *work, int32_t pid, int32_t tid)
{
	uint32_t known = work->thread_keys.n;
	uint32_t n = keys_number(&work->thread_keys, keys_pair((uint32_t)pid, (uint32_t)tid));
	if (n == KEYS_NONE || n < known)
		return n;
	uint32_t process = process_of(work, pid);
	struct work_thread *threads = array_reserve(work->threads, n, &work->threads_capacity, sizeof(*threads), 16);
	if (process == KEYS_NONE || threads == NULL)
		return KEYS_NONE;
	work->threads = threads;
	uint32_t *busy = array_reserve(work->busy_threads, n, &work->busy_capacity, sizeof(*busy),
		16); // room for all threads
	if (busy == NULL)
		return KEYS_NONE;
	work->busy_threads = busy;
	threads[n] = (struct work_thread){.pid = pid, .tid = tid, .process = process, .top = BLOCK_NONE};
	return n;
}

/* ---- spans ---- */

static uint32_t take_entry(struct blocks_work *work)
{
	uint32_t index = work->free_open;
	if (index != BLOCK_NONE) {
		work->free_open = work->open[index].next_free;
		return index;
	}
	struct open_span *open = array_reserve(work->open, work->n_open, &work->open_capacity, sizeof(*open), 64);
	if (open == NULL)
		return BLOCK_NONE;
	work->open = open;
	open[work->n_open] = (struct open_span){0};
	return (uint32_t)work->n_open++;
}

// The innermost open span of the span's thread, or the latest range of its process.
static uint32_t *top_of(struct blocks_work *work, const struct open_span *open)
{
	return open->thread != BLOCK_NONE ? &work->threads[open->thread].top
					  : &work->processes[open->process].last_range;
}

/* The span that encloses the new one. Spans that end at this instant do not enclose a span that continues: spans
 * without a gap between them are siblings. */
static uint32_t insert_below(struct blocks_work *work, const struct open_span *open, const struct run_span *span)
{
	uint32_t below = *top_of(work, open);
	if (open->thread == BLOCK_NONE || span->end_ns == span->begin_ns)
		return below;
	for (; below != BLOCK_NONE && work->open[below].end_ns <= span->begin_ns; below = work->open[below].below)
		work->open[below].left = true;
	return below;
}

static bool apply_ends(struct blocks_work *work, struct open_span *open, const struct run_span *span)
{
	bool range = span->kind == SPAN_RANGE;
	open->thread = range ? BLOCK_NONE : thread_of(work, span->pid, span->tid);
	if (!range && open->thread == KEYS_NONE)
		return false;
	open->process = range ? process_of(work, span->pid) : work->threads[open->thread].process;
	if (open->process == KEYS_NONE)
		return false;
	open->below = insert_below(work, open, span);
	open->above = BLOCK_NONE;
	bool on_top = !range && open->below != BLOCK_NONE;
	uint32_t under = on_top ? work->open[open->below].path : work->processes[open->process].root;
	open->path = paths_child(&work->paths, under, open->block);
	if (range && open->begin_errors == NULL)
		open->begin_errors = arena_alloc(work->arena, work->findings->n_domains, sizeof(*open->begin_errors));
	return open->path != PATH_NONE && (!range || open->begin_errors != NULL);
}

static int begin(struct blocks_work *work, struct ends *ends, uint32_t number, size_t sample)
{
	const struct run *run = work->run;
	const struct run_span *span = &run->spans[number];
	uint32_t index = take_entry(work);
	if (index == BLOCK_NONE || checkpoints_go_to(&work->checkpoints, span->begin_ns) < 0)
		return -ENOMEM;
	deconvolve_pass(work);
	shares_pass(work);
	struct open_span *open = &work->open[index];
	open->end_ns = span->end_ns;
	open->left = false;
	open->span = number;
	open->block = work->names.of[number];
	open->begun = work->begun++;
	if (!apply_ends(work, open, span) || ends_add(work, ends, index) < 0)
		return -ENOMEM;
	calls_begin(work, open, sample < run->n && run->t_ns[sample] <= span->end_ns);
	if (open->below != BLOCK_NONE)
		work->open[open->below].above = index;
	if (open->thread != BLOCK_NONE) {
		shares_thread(work, &work->threads[open->thread], index);
		return 0;
	}
	work->processes[open->process].last_range = index;
	shares_range_begin(work, open);
	return 0;
}

// Removes the span from its thread, or from its process's ranges.
static void leave(struct blocks_work *work, struct open_span *open)
{
	if (open->thread == BLOCK_NONE)
		shares_range_end(work, open);
	else if (open->above == BLOCK_NONE)
		shares_thread(work, &work->threads[open->thread], open->below);
	if (open->above != BLOCK_NONE)
		work->open[open->above].below = open->below;
	else
		*top_of(work, open) = open->below;
	if (open->below != BLOCK_NONE)
		work->open[open->below].above = open->above;
}

static int end(struct blocks_work *work, uint32_t index)
{
	struct open_span *open = &work->open[index];
	if (checkpoints_go_to(&work->checkpoints, open->end_ns) < 0)
		return -ENOMEM;
	deconvolve_pass(work);
	shares_pass(work);
	if (!open->left)
		leave(work, open);
	calls_end(work, open);
	open->next_free = work->free_open;
	work->free_open = index;
	return 0;
}

/* ---- the walk ---- */

struct sweep {
	struct blocks_work *work;
	struct ends ends;
	uint32_t *order; // the run's spans sorted by begin; NULL: they are sorted already
	size_t next;     // index into order
	size_t sample;   // next sample
};

bool block_has_ended(const struct run_span *span)
{
	return value_ok(span->begin_ns) && value_ok(span->end_ns) && span->end_ns >= span->begin_ns;
}

// Of spans that begin at the same instant the longer one comes first, so that it encloses the other.
static int by_begin(const void *a, const void *b, void *data)
{
	const struct run_span *spans = data;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct run_span *x = &spans[i], *y = &spans[k];
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (i > k) - (i < k);
}

// The spans are usually sorted already.
static int put_in_order(struct sweep *sweep)
{
	const struct run *run = sweep->work->run;
	size_t i = 1;
	while (i < run->n_spans && run->spans[i].begin_ns >= run->spans[i - 1].begin_ns)
		i++;
	if (i >= run->n_spans)
		return 0;
	sweep->order = calloc_array(run->n_spans, sizeof(*sweep->order));
	if (sweep->order == NULL)
		return -ENOMEM;
	for (i = 0; i < run->n_spans; i++)
		sweep->order[i] = (uint32_t)i;
	qsort_r(sweep->order, run->n_spans, sizeof(*sweep->order), by_begin, run->spans);
	return 0;
}

static uint32_t next_span(struct sweep *sweep)
{
	const struct run *run = sweep->work->run;
	for (; sweep->next < run->n_spans; sweep->next++) {
		uint32_t number = sweep->order != NULL ? sweep->order[sweep->next] : (uint32_t)sweep->next;
		if (block_has_ended(&run->spans[number]))
			return number;
	}
	return BLOCK_NONE;
}

// Processes samples and metrics before an instant, or up to and including it.
static int read_until(struct sweep *sweep, int64_t t_ns, bool with_it)
{
	struct blocks_work *work = sweep->work;
	const struct run *run = work->run;
	int r = 0;
	for (; r == 0 && sweep->sample < run->n; sweep->sample++) {
		int64_t sample_ns = run->t_ns[sweep->sample];
		if (with_it ? sample_ns > t_ns : sample_ns >= t_ns)
			break;
		r = calls_sample(work, sweep->sample);
	}
	while (r == 0 && units_left(work) && (with_it ? units_next_ns(work) <= t_ns : units_next_ns(work) < t_ns))
		r = units_count_next(work);
	return r;
}

static int sweep_all(struct sweep *sweep)
{
	struct blocks_work *work = sweep->work;
	int r = 0;
	while (r == 0) {
		uint32_t number = next_span(sweep);
		if (number == BLOCK_NONE && sweep->ends.n == 0)
			return read_until(sweep, INT64_MAX, true);
		const struct run_span *span = number != BLOCK_NONE ? &work->run->spans[number] : NULL;
		int64_t end_ns = sweep->ends.n > 0 ? work->open[sweep->ends.indices[0]].end_ns : INT64_MAX;
		if (span != NULL && (sweep->ends.n == 0 || span->begin_ns <= end_ns)) {
			r = read_until(sweep, span->begin_ns, false);
			if (r == 0)
				r = begin(work, &sweep->ends, number, sweep->sample);
			sweep->next++;
		} else {
			r = read_until(sweep, end_ns, true);
			if (r == 0)
				r = end(work, ends_take(work, &sweep->ends));
		}
	}
	return r;
}

int blocks_sweep(struct blocks_work *work)
{
	struct sweep sweep = {.work = work};
	int r = put_in_order(&sweep);
	if (r == 0)
		r = checkpoints_go_to(&work->checkpoints, INT64_MIN);
	if (r == 0)
		r = shares_init(work);
	if (r == 0)
		r = sweep_all(&sweep);
	if (r == 0)
		r = checkpoints_go_to(&work->checkpoints, INT64_MAX);
	if (r == 0) {
		shares_pass(work);
		shares_end(work);
	}
	free(sweep.order);
	free(sweep.ends.indices);
	return r;
}
