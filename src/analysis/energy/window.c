#include "analysis/energy/attribute.h"

#include "energy/slice.h"
#include "base/search.h"
#include "base/util.h"

#include <errno.h>

// The counters that a division of CPU time needs; a sample that lacks one of them ends no window.
static bool has_cpu(const struct run *run, size_t sample)
{
	static const enum run_metric needed[] = {RUN_SYSTEM_BUSY, RUN_MAIN_CPU, RUN_DESCENDANTS_CPU, RUN_SELF_CPU};
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!value_ok(run->values[needed[i]][sample]))
			return false;
	return true;
}

// Growth of a counter over a window. What went down (a target's process whose time got lost) counts as no growth.
static double growth(const struct run *run, enum run_metric metric, const struct window *window)
{
	int64_t before = run->values[metric][window->first], after = run->values[metric][window->last];
	if (!value_ok(before) || !value_ok(after))
		return (double)NAN;
	return after > before ? (double)after - (double)before : 0;
}

/* The target's time may come from a finer clock than the machine's ticks, and then exceed them: in one window, which makes up for what the
 * next one has too much. *carry_ns is that, 0 or less. */
static double busy_ns(double counted_ns, double ours_ns, double *carry_ns)
{
	static const double most_ns = 2e7; // two ticks; more is no matter of ticks
	double settled_ns = counted_ns + *carry_ns;
	*carry_ns = fmax(fmin(settled_ns - ours_ns, 0), -most_ns); // NaN: 0
	return ours_ns > settled_ns ? ours_ns : settled_ns;
}

static void measure(const struct run *run, struct window *window, double *carry_ns)
{
	window->begin_ns = run->t_ns[window->first];
	window->end_ns = run->t_ns[window->last];
	window->target_ns = growth(run, RUN_MAIN_CPU, window) + growth(run, RUN_DESCENDANTS_CPU, window);
	window->wattle_ns = growth(run, RUN_SELF_CPU, window);
	window->idle_ns = growth(run, RUN_SYSTEM_IDLE, window);
	window->busy_ns = busy_ns(growth(run, RUN_SYSTEM_BUSY, window), window->target_ns + window->wattle_ns,
		carry_ns);
}

// Where nothing was sampled twice: the whole segment, with nothing known of it.
static struct window whole_segment(const struct run *run, size_t segment, struct slice samples)
{
	return (struct window){
		.segment = (uint32_t)segment,
		.first = (uint32_t)samples.begin,
		.last = (uint32_t)samples.begin,
		.begin_ns = run->segments[segment].start_ns,
		.end_ns = run->segments[segment].end_ns,
		.target_ns = (double)NAN,
		.wattle_ns = (double)NAN,
		.busy_ns = (double)NAN,
		.idle_ns = (double)NAN,
	};
}

static struct window window_of(size_t segment, size_t first, size_t last)
{
	return (struct window){.segment = (uint32_t)segment, .first = (uint32_t)first, .last = (uint32_t)last};
}

static size_t count_with_cpu(const struct run *run, struct slice samples)
{
	size_t n = 0;
	for (size_t i = samples.begin; i < samples.end; i++)
		n += has_cpu(run, i);
	return n;
}

// Cuts a segment's samples into windows at `out`; returns how many.
static size_t cut(const struct run *run, size_t segment, struct slice samples, struct window *out)
{
	bool with_cpu = count_with_cpu(run, samples) >= 2;
	size_t n = 0, first = samples.end, last = samples.end;
	for (size_t i = samples.begin; i < samples.end; i++) {
		if (with_cpu && !has_cpu(run, i))
			continue;
		if (first == samples.end)
			first = i;
		last = i;
		if (run->t_ns[i] - run->t_ns[first] < WINDOW_MIN_MS * NS_PER_MS)
			continue;
		out[n++] = window_of(segment, first, i);
		first = i;
	}
	if (first < last && n > 0)
		out[n - 1].last = (uint32_t)last; // a remainder too short to stand alone
	else if (first < last)
		out[n++] = window_of(segment, first, last);
	double carry_ns = 0;
	for (size_t i = 0; i < n; i++)
		measure(run, &out[i], &carry_ns);
	if (n == 0)
		out[n++] = whole_segment(run, segment, samples);
	return n;
}

static void reach(const struct run *run, size_t segment, struct window *windows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		windows[i].from_ns = i > 0 ? windows[i].begin_ns : slice_from_ns(run, segment);
		windows[i].to_ns = i + 1 < n ? windows[i].end_ns : slice_to_ns(run, segment);
	}
}

static size_t most_windows(const struct run *run, struct slice samples)
{
	size_t n = samples.end - samples.begin;
	if (n < 2)
		return 1;
	int64_t span_ns = run->t_ns[samples.end - 1] - run->t_ns[samples.begin];
	size_t by_time = (size_t)(span_ns / (WINDOW_MIN_MS * NS_PER_MS)) + 1;
	return by_time < n ? by_time : n;
}

// Whole ones: ticks make a core look like a little more than one.
static double most_cores(const struct window *windows, size_t n)
{
	static const double ticks = 0.15;
	double most = 1;
	for (size_t i = 0; i < n; i++) {
		double length_ns = (double)(windows[i].end_ns - windows[i].begin_ns);
		if (length_ns >= WINDOW_MIN_MS * 1e6 && windows[i].target_ns / length_ns > most)
			most = windows[i].target_ns / length_ns;
	}
	return ceil(most - ticks);
}

int windows_make(const struct run *run, struct arena *arena, struct windows *ret_windows)
{
	size_t most = 0;
	for (size_t s = 0; s < run->n_segments; s++)
		most += most_windows(run, slice_samples(run, s));
	struct window *at = arena_alloc(arena, most, sizeof(*at));
	if (at == NULL || run->n > UINT32_MAX)
		return -ENOMEM;
	size_t n = 0;
	for (size_t s = 0; s < run->n_segments; s++) {
		size_t count = cut(run, s, slice_samples(run, s), at + n);
		reach(run, s, at + n, count);
		n += count;
	}
	*ret_windows = (struct windows){.at = at, .n = n, .most_cores = most_cores(at, n)};
	return 0;
}

static bool starts_by(const void *window, const void *t_ns)
{
	return ((const struct window *)window)->from_ns <= *(const int64_t *)t_ns;
}

// The last one that starts at or before t_ns.
const struct window *windows_find(const struct windows *windows, int64_t t_ns)
{
	size_t after = search_first(windows->at, windows->n, sizeof(*windows->at), &t_ns, starts_by);
	return &windows->at[after > 0 ? after - 1 : 0];
}
