#include "analysis/energy/attribute.h"

#include "base/util.h"
#include "energy/slice.h"

#include <errno.h>
#include <string.h>

// Whether a sample has all counters that the division of CPU time needs; a sample that lacks one ends no window.
static bool has_cpu(const struct run *run, size_t sample)
{
	static const enum run_metric needed[] = {RUN_SYSTEM_BUSY, RUN_MAIN_CPU, RUN_DESCENDANTS_CPU, RUN_SELF_CPU};
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!value_ok(run_value(run, needed[i], sample)))
			return false;
	return true;
}

// Growth of a counter over a window. A decrease (CPU time of an exited process was lost) counts as 0.
static double growth(const struct run *run, enum run_metric metric, const struct packed_window *row)
{
	int64_t before = run_value(run, metric, row->first), after = run_value(run, metric, row->last);
	if (!value_ok(before) || !value_ok(after))
		return (double)NAN;
	return after > before ? (double)after - (double)before : 0;
}

/* The target's CPU time can come from a finer clock than the machine's ticks and exceed the busy time of one window;
 * the next window then counts too much. *carry_ns is that excess, 0 or negative. */
static double busy_ns(double counted_ns, double ours_ns, double *carry_ns)
{
	static const double max_ns = 2e7; // two ticks; a larger difference has another cause
	double consumed_ns = counted_ns + *carry_ns;
	*carry_ns = fmax(fmin(consumed_ns - ours_ns, 0), -max_ns); // NaN: 0
	return ours_ns > consumed_ns ? ours_ns : consumed_ns;
}

/* ---- rows ---- */

static bool keep_ns(struct windows *windows, struct arena *arena, double ns, uint32_t *ret_low, uint8_t *ret_high)
{
	bool fits = ns >= 0 && ns < (double)((uint64_t)WINDOW_ODD << 32) && ns == floor(ns);
	*ret_high = fits ? (uint8_t)((uint64_t)ns >> 32) : WINDOW_ODD;
	*ret_low = fits ? (uint32_t)(uint64_t)ns : UINT32_MAX;
	if (fits || isnan(ns))
		return true;
	if (windows->n_odd == windows->odd_capacity) {
		size_t capacity = windows->odd_capacity > 0 ? 2 * windows->odd_capacity : 16;
		double *larger = arena_alloc(arena, capacity, sizeof(*larger));
		if (larger == NULL)
			return false;
		if (windows->n_odd > 0)
			memcpy(larger, windows->odd_ns, windows->n_odd * sizeof(*larger));
		windows->odd_ns = larger;
		windows->odd_capacity = capacity;
	}
	*ret_low = (uint32_t)windows->n_odd;
	windows->odd_ns[windows->n_odd++] = ns;
	return true;
}

/* ---- making ---- */

static bool measure(struct windows *windows, struct arena *arena, struct packed_window *row, double *carry_ns)
{
	const struct run *run = windows->run;
	double target_ns = growth(run, RUN_MAIN_CPU, row) + growth(run, RUN_DESCENDANTS_CPU, row);
	double wattle_ns = growth(run, RUN_SELF_CPU, row);
	const double ns[WINDOW_TIMES] = {target_ns, wattle_ns,
		busy_ns(growth(run, RUN_SYSTEM_BUSY, row), target_ns + wattle_ns, carry_ns),
		growth(run, RUN_SYSTEM_IDLE, row)};
	for (size_t i = 0; i < WINDOW_TIMES; i++)
		if (!keep_ns(windows, arena, ns[i], &row->low[i], &row->high[i]))
			return false;
	return true;
}

// The window of a segment with fewer than two samples: the whole segment, without CPU times.
static struct packed_window row_of(size_t segment, size_t first, size_t last)
{
	struct packed_window row = {.segment = (uint32_t)segment, .first = (uint32_t)first, .last = (uint32_t)last};
	memset(row.high, WINDOW_ODD, sizeof(row.high));
	memset(row.low, UINT8_MAX, sizeof(row.low));
	return row;
}

static size_t count_with_cpu(const struct run *run, struct slice samples)
{
	size_t n = 0;
	for (size_t i = samples.begin; i < samples.end; i++)
		n += has_cpu(run, i);
	return n;
}

// Divides a segment's samples into windows at `out`; returns their number.
static size_t cut(const struct run *run, size_t segment, struct slice samples, struct packed_window *out)
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
		out[n++] = row_of(segment, first, i);
		first = i;
	}
	if (first < last && n > 0)
		out[n - 1].last = (uint32_t)last; // the remainder is too short for a window of its own
	else if (first < last)
		out[n++] = row_of(segment, first, last);
	if (n == 0)
		out[n++] = row_of(segment, samples.begin, samples.begin);
	return n;
}

static size_t max_windows(const struct run *run, struct slice samples)
{
	size_t n = samples.end - samples.begin;
	if (n < 2)
		return 1;
	int64_t span_ns = run->t_ns[samples.end - 1] - run->t_ns[samples.begin];
	size_t by_time = (size_t)(span_ns / (WINDOW_MIN_MS * NS_PER_MS)) + 1;
	return by_time < n ? by_time : n;
}

// Rounded to whole cores: ticks make one core look like slightly more than one.
static double max_cores(const struct windows *windows)
{
	static const double ticks = 0.15;
	double most = 1;
	for (size_t i = 0; i < windows->n; i++) {
		struct window window = windows_at(windows, i);
		double length_ns = (double)(window.end_ns - window.begin_ns);
		if (length_ns >= WINDOW_MIN_MS * 1e6 && window.target_ns / length_ns > most)
			most = window.target_ns / length_ns;
	}
	return ceil(most - ticks);
}

int windows_make(const struct run *run, struct arena *arena, struct windows *ret_windows)
{
	size_t most = 0;
	for (size_t s = 0; s < run->n_segments; s++)
		most += max_windows(run, slice_samples(run, s));
	struct windows windows = {.run = run, .rows = arena_alloc(arena, most, sizeof(*windows.rows))};
	if (windows.rows == NULL || run->n > UINT32_MAX)
		return -ENOMEM;
	for (size_t s = 0; s < run->n_segments; s++) {
		size_t begin = windows.n;
		double carry_ns = 0;
		windows.n += cut(run, s, slice_samples(run, s), windows.rows + begin);
		for (size_t i = begin; i < windows.n; i++)
			if (windows.rows[i].last > windows.rows[i].first &&
				!measure(&windows, arena, &windows.rows[i], &carry_ns))
				return -ENOMEM;
	}
	windows.max_cores = max_cores(&windows);
	*ret_windows = windows;
	return 0;
}

// The last window that starts at or before t_ns.
size_t windows_find(const struct windows *windows, int64_t t_ns)
{
	size_t low = 0, high = windows->n;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (windows_from_ns(windows, middle) <= t_ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}
