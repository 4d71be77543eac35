#include "analysis/compare/tracking_blocks.h"

#include "analysis/compare/series.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/util.h"

#include <errno.h>

struct call {
	double begin_s, end_s; // both ends included
};

struct scratch { // sized for the largest block
	struct call *calls;
	struct slice *slices;
	double *times_s;
};

static int by_begin(const void *left, const void *right)
{
	const struct call *a = left, *b = right;
	if (a->begin_s < b->begin_s || a->begin_s > b->begin_s)
		return a->begin_s < b->begin_s ? -1 : 1;
	return (a->end_s > b->end_s) - (a->end_s < b->end_s);
}

// The calls of each process are sorted already.
static void sort_calls(struct call *calls, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (calls[i].begin_s >= calls[i - 1].begin_s)
			continue;
		qsort(calls, n, sizeof(*calls), by_begin);
		return;
	}
}

// Copies the calls that have ended.
static size_t take_calls(const struct sub_tracking_call *from, size_t n_from, struct call *calls)
{
	size_t n = 0;
	for (size_t i = 0; i < n_from; i++)
		if (!isnan(from[i].end_s))
			calls[n++] = (struct call){from[i].begin_s, from[i].end_s};
	sort_calls(calls, n);
	return n;
}

static struct value_stats compute_time(const struct call *calls, size_t n, double *times_s)
{
	for (size_t i = 0; i < n; i++)
		times_s[i] = calls[i].end_s - calls[i].begin_s;
	struct value_stats stats = series_stats(times_s, &(struct slice){0, n}, 1);
	if (n == 0)
		stats.total = 0;
	return stats;
}

static bool is_time_before(const void *item, const void *t)
{
	return *(const double *)item < *(const double *)t;
}

static bool is_time_by(const void *item, const void *t)
{
	return *(const double *)item <= *(const double *)t;
}

// The first of times[from, n) that is not before t or, with `after`, is after t. Galloping search from `from`.
static size_t seek(const double *times, size_t from, size_t n, double t, bool after)
{
	size_t step = 1, low = from;
	while (low + step <= n && (after ? times[low + step - 1] <= t : times[low + step - 1] < t)) {
		low += step;
		step *= 2;
	}
	size_t high = low + step <= n ? low + step - 1 : n;
	return low + search_first(times + low, high - low, sizeof(*times), &t, after ? is_time_by : is_time_before);
}

/* Finds the timepoints inside the union of the calls, as disjoint ascending slices; returns their number. Also counts
 * the calls that contain a timepoint. */
static size_t find_timepoints(const struct tracking_table *table, const struct call *calls, size_t n,
	struct slice *slices, int64_t *ret_n_non_empty)
{
	const double *times = table->values[TRACKING_TIMESTAMP];
	size_t n_slices = 0, begin = 0;
	*ret_n_non_empty = 0;
	for (size_t i = 0; i < n; i++) {
		begin = seek(times, begin, table->n_timed, calls[i].begin_s, false);
		if (begin == table->n_timed || times[begin] > calls[i].end_s)
			continue;
		++*ret_n_non_empty;
		struct slice *last = n_slices > 0 ? &slices[n_slices - 1] : NULL;
		bool joins = last != NULL && begin <= last->end;
		size_t end = seek(times, joins ? last->end : begin, table->n_timed, calls[i].end_s, true);
		if (!joins)
			slices[n_slices++] = (struct slice){begin, end};
		else if (end > last->end)
			last->end = end;
	}
	return n_slices;
}

static void measure(const struct tracking_table *table, const struct scratch *scratch, size_t n_calls,
	struct tracking_block *block)
{
	size_t n = find_timepoints(table, scratch->calls, n_calls, scratch->slices, &block->non_empty_calls);
	for (size_t i = 0; i < n; i++)
		block->timepoints += (int64_t)(scratch->slices[i].end - scratch->slices[i].begin);
	for (size_t c = 0; c < TRACKING_METRICS; c++)
		block->metrics[c] = series_stats(table->values[c], scratch->slices, n);
}

static void make_one(const struct tracking_table *table, const struct sub_tracking_call *calls, size_t n,
	const struct scratch *scratch, struct tracking_block *block)
{
	*block = (struct tracking_block){.name = calls[0].name};
	size_t n_ended = take_calls(calls, n, scratch->calls);
	block->calls = (int64_t)n_ended;
	block->compute_time_s = compute_time(scratch->calls, n_ended, scratch->times_s);
	if (table != NULL) {
		measure(table, scratch, n_ended, block);
		return;
	}
	block->timepoints = block->non_empty_calls = VALUE_MISSING;
	for (size_t c = 0; c < TRACKING_METRICS; c++)
		block->metrics[c] = series_stats(NULL, NULL, 0);
}

// Number of calls from the first on with the same name: equal names share one pointer.
static size_t same_name(const struct sub_tracking_call *calls, size_t n)
{
	size_t k = 0;
	while (k < n && calls[k].name == calls[0].name)
		k++;
	return k;
}

static int make_blocks(const struct sub_tracking_call *calls, size_t n_calls, const struct scratch *scratch,
	struct arena *arena, struct tracking_findings *findings)
{
	for (size_t at = 0; at < n_calls; at += same_name(calls + at, n_calls - at))
		findings->n_blocks++;
	findings->blocks = arena_alloc(arena, findings->n_blocks, sizeof(*findings->blocks));
	if (findings->blocks == NULL)
		return -ENOMEM;
	size_t at = 0;
	for (size_t k = 0; k < findings->n_blocks; k++) {
		size_t n = same_name(calls + at, n_calls - at);
		make_one(findings->table, calls + at, n, scratch, &findings->blocks[k]);
		at += n;
	}
	return 0;
}

int tracking_blocks_make(const struct tracking_table *table, const struct sub_tracking_call *calls, size_t n_calls,
	struct arena *arena, struct tracking_findings *ret_findings)
{
	struct tracking_findings findings = {.table = table};
	size_t n = table != NULL ? table->n : 0, most = 0;
	for (size_t c = 0; c < TRACKING_METRICS; c++)
		findings.overall[c] = series_stats(n > 0 ? table->values[c] : NULL, &(struct slice){0, n}, 1);
	for (size_t at = 0, k; at < n_calls; at += k) {
		k = same_name(calls + at, n_calls - at);
		most = k > most ? k : most;
	}
	wattle_cleanup_free struct call *buffer = calloc_array(most, sizeof(*buffer));
	// At most as many slices as timepoints, and as calls.
	wattle_cleanup_free struct slice *slices = calloc_array(n < most ? n : most, sizeof(*slices));
	wattle_cleanup_free double *times_s = calloc_array(most, sizeof(*times_s));
	if (buffer == NULL || slices == NULL || times_s == NULL)
		return -ENOMEM;
	int r = make_blocks(calls, n_calls, &(struct scratch){buffer, slices, times_s}, arena, &findings);
	if (r == 0)
		*ret_findings = findings;
	return r;
}
