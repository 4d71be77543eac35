// Resamples intervals with values to buckets.
#include "analysis/chart/builder.h"

#include "base/util.h"

#include <errno.h>

bool chart_begin(struct chart_work *work, struct chart *chart, size_t max_series)
{
	chart->series = arena_alloc(work->arena, max_series, sizeof(*chart->series));
	chart->n_series = 0;
	return chart->series != NULL;
}

struct chart_series *chart_add(struct chart_work *work, struct chart *chart, const struct chart_series *like)
{
	size_t n = work->charts->axis.n;
	struct chart_series *series = &chart->series[chart->n_series];
	*series = *like;
	series->mean = arena_alloc(work->arena, n, sizeof(double));
	series->low = arena_alloc(work->arena, n, sizeof(double));
	series->high = arena_alloc(work->arena, n, sizeof(double));
	if (series->mean == NULL || series->low == NULL || series->high == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++)
		series->mean[i] = series->low[i] = series->high[i] = (double)NAN;
	series->highest = series->lowest = (double)NAN;
	chart->n_series++;
	return series;
}

static double larger(double a, double b)
{
	return b > a || isnan(a) ? b : a;
}

static double smaller(double a, double b)
{
	return b < a || isnan(a) ? b : a;
}

static bool is_known(const struct chart_work *work, struct chart_series *series)
{
	for (size_t i = 0; i < work->charts->axis.n; i++) {
		series->highest = larger(series->highest, series->high[i]);
		series->lowest = smaller(series->lowest, series->low[i]);
	}
	return !isnan(series->highest);
}

int chart_end(struct chart_work *work, struct chart *chart)
{
	struct charts *charts = work->charts;
	size_t n = 0;
	for (size_t i = 0; i < chart->n_series; i++)
		if (is_known(work, &chart->series[i]))
			chart->series[n++] = chart->series[i];
	chart->n_series = n;
	if (n == 0)
		return 0;
	if (charts->n_charts == work->charts_capacity) {
		size_t capacity = work->charts_capacity > 0 ? 2 * work->charts_capacity : 16;
		struct chart *more = arena_alloc(work->arena, capacity, sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		if (charts->n_charts > 0)
			memcpy(more, charts->charts, charts->n_charts * sizeof(*more));
		charts->charts = more;
		work->charts_capacity = capacity;
	}
	charts->charts[charts->n_charts++] = *chart;
	return 0;
}

/* ---- resampler ---- */

int resampler_begin(struct chart_resampler *resampler, const struct chart_work *work, struct chart_series *series)
{
	size_t n = work->charts->axis.n;
	*resampler = (struct chart_resampler){.work = work, .series = series};
	resampler->weight_s = arena_alloc(work->scratch, n, sizeof(double));
	return resampler->weight_s != NULL ? 0 : -ENOMEM;
}

// The value is known; the bucket's may be NaN.
static void widen(struct chart_series *series, size_t bucket, double value)
{
	if (!(value <= series->high[bucket]))
		series->high[bucket] = value;
	if (!(value >= series->low[bucket]))
		series->low[bucket] = value;
}

static void add_weight(struct chart_resampler *resampler, size_t bucket, double seconds, double value)
{
	double *sum = &resampler->series->mean[bucket];
	*sum = (isnan(*sum) ? 0 : *sum) + value * seconds;
	resampler->weight_s[bucket] += seconds;
}

// An instant belongs to the bucket that contains it or ends with it.
static bool touches(const struct chart_work *work, size_t bucket, int64_t from_ns, int64_t to_ns)
{
	int64_t begin_ns = work->from_ns[bucket], end_ns = work->to_ns[bucket];
	if (from_ns == to_ns)
		return begin_ns < to_ns && to_ns <= end_ns;
	return from_ns < end_ns && to_ns > begin_ns;
}

static void add_interval(struct chart_resampler *resampler, int64_t from_ns, int64_t to_ns, double value,
	bool has_weight)
{
	const struct chart_work *work = resampler->work;
	size_t n = work->charts->axis.n, first = resampler->bucket;
	if (isnan(value) || to_ns < from_ns)
		return;
	while (first < n && work->to_ns[first] < from_ns)
		first++;
	resampler->bucket = first;
	for (size_t i = first; i < n && work->from_ns[i] <= to_ns; i++) {
		if (!touches(work, i, from_ns, to_ns))
			continue;
		widen(resampler->series, i, value);
		int64_t begin_ns = from_ns > work->from_ns[i] ? from_ns : work->from_ns[i];
		int64_t end_ns = to_ns < work->to_ns[i] ? to_ns : work->to_ns[i];
		if (has_weight && end_ns > begin_ns)
			add_weight(resampler, i, (double)(end_ns - begin_ns) / 1e9, value);
	}
}

void resampler_hold(struct chart_resampler *resampler, int64_t from_ns, int64_t to_ns, double value)
{
	add_interval(resampler, from_ns, to_ns, value, true);
}

void resampler_touch(struct chart_resampler *resampler, int64_t from_ns, int64_t to_ns, double value)
{
	add_interval(resampler, from_ns, to_ns, value, false);
}

void resampler_dot(struct chart_resampler *resampler, int64_t t_ns, double value)
{
	const struct chart_work *work = resampler->work;
	size_t n = work->charts->axis.n;
	while (resampler->bucket + 1 < n && work->to_ns[resampler->bucket] < t_ns)
		resampler->bucket++;
	if (n == 0 || isnan(value))
		return;
	widen(resampler->series, resampler->bucket, value);
	add_weight(resampler, resampler->bucket, 1, value);
}

void resampler_end(struct chart_resampler *resampler)
{
	struct chart_series *series = resampler->series;
	for (size_t i = 0; i < resampler->work->charts->axis.n; i++) {
		if (resampler->weight_s[i] > 0)
			series->mean[i] /= resampler->weight_s[i];
		else // only instants, or no value
			series->mean[i] = (series->low[i] + series->high[i]) / 2;
		series->mean[i] = fmin(fmax(series->mean[i], series->low[i]), series->high[i]); // rounding error
	}
}

/* ---- gauges ---- */

static bool counts(const struct chart_gauge *gauge, size_t i)
{
	if (value_ok(values_at(gauge->values, i)))
		return true;
	return gauge->device == NULL || !slice_is_poll(gauge->device, i); // a sample without a value is a hole
}

static double value_of(const struct chart_gauge *gauge, size_t i)
{
	return value_to_double(values_at(gauge->values, i), gauge->scale);
}

struct gauge_walk {
	struct chart_resampler *resampler;
	const struct chart_gauge *gauge;
	int64_t start_ns, end_ns, hole_ns; // of the segment
	int64_t before_ns;
	double before; // NaN: none
	bool any;      // there is a previous reading
};

// A reading before the start is ignored, unless it is the only one.
static void first_reading(struct gauge_walk *walk, int64_t t_ns, double value)
{
	if (t_ns <= walk->start_ns)
		return;
	if (t_ns - walk->start_ns <= walk->hole_ns)
		resampler_hold(walk->resampler, walk->start_ns, t_ns, value);
	else
		resampler_touch(walk->resampler, t_ns, t_ns, value);
}

static void reading(struct gauge_walk *walk, size_t i)
{
	int64_t t_ns = walk->gauge->t_ns[i];
	double value = value_of(walk->gauge, i);
	if (!walk->any)
		first_reading(walk, t_ns, value);
	else if (t_ns - walk->before_ns <= walk->hole_ns)
		resampler_hold(walk->resampler, walk->before_ns, t_ns, value);
	else
		resampler_touch(walk->resampler, t_ns, t_ns, value);
	walk->any = true;
	walk->before_ns = t_ns;
	walk->before = value;
}

static void gauge_segment(struct gauge_walk *walk, struct slice rows)
{
	for (size_t i = rows.begin; i < rows.end; i++)
		if (counts(walk->gauge, i))
			reading(walk, i);
	bool soon = walk->end_ns - walk->before_ns <= walk->hole_ns;
	if (walk->any && soon && walk->end_ns > walk->before_ns)
		resampler_hold(walk->resampler, walk->before_ns, walk->end_ns, walk->before);
}

int resampler_gauge(const struct chart_work *work, struct chart_series *series, const struct chart_gauge *gauge)
{
	struct chart_resampler resampler;
	if (!values_any(gauge->values))
		return 0;
	if (resampler_begin(&resampler, work, series) < 0)
		return -ENOMEM;
	for (size_t s = 0; s < work->run->n_segments; s++) {
		const struct run_segment *segment = &work->run->segments[s];
		struct gauge_walk walk = {.resampler = &resampler,
			.gauge = gauge,
			.start_ns = segment->start_ns,
			.end_ns = segment->end_ns,
			.hole_ns = work->hole_ns,
			.before = (double)NAN};
		gauge_segment(&walk, slice_of(work->run, s, gauge->t_ns, gauge->n));
	}
	resampler_end(&resampler);
	return 0;
}
