// The axis of measured time: consecutive segments, divided into buckets.
#include "analysis/chart/builder.h"

#include "base/util.h"

#include <errno.h>

// Samples within a segment are the bucket boundaries if there are few enough of them.
static size_t count_cuts(const struct run *run, const struct run_segment *segment, struct slice samples)
{
	size_t n = 0;
	for (size_t i = samples.begin; i < samples.end; i++)
		n += run->t_ns[i] > segment->start_ns && run->t_ns[i] < segment->end_ns &&
			(i == samples.begin || run->t_ns[i] > run->t_ns[i - 1]);
	return n;
}

static void add_bucket(struct chart_work *work, size_t segment, int64_t to_ns)
{
	struct chart_axis *axis = &work->charts->axis;
	const struct chart_segment *on_axis = &axis->segments[segment];
	struct slice *buckets = &work->buckets[segment];
	size_t i = axis->n++;
	bool first = i == buckets->begin;
	work->from_ns[i] = first ? on_axis->start_ns : work->to_ns[i - 1];
	work->to_ns[i] = to_ns;
	axis->from_s[i] = first ? on_axis->from_s : axis->to_s[i - 1];
	axis->to_s[i] = on_axis->from_s + seconds_between(on_axis->start_ns, to_ns);
	buckets->end = axis->n;
}

static void cut_at_samples(struct chart_work *work, size_t segment, struct slice samples)
{
	const struct run *run = work->run;
	const struct run_segment *s = &run->segments[segment];
	int64_t last_ns = s->start_ns;
	for (size_t i = samples.begin; i < samples.end; i++) {
		if (run->t_ns[i] <= last_ns || run->t_ns[i] >= s->end_ns)
			continue;
		last_ns = run->t_ns[i];
		add_bucket(work, segment, last_ns);
	}
	add_bucket(work, segment, s->end_ns);
}

static void cut_evenly(struct chart_work *work, size_t segment, size_t n)
{
	const struct run_segment *s = &work->run->segments[segment];
	double step_ns = (double)(s->end_ns - s->start_ns) / (double)n;
	for (size_t k = 1; k < n; k++)
		add_bucket(work, segment, s->start_ns + (int64_t)((double)k * step_ns));
	add_bucket(work, segment, s->end_ns);
}

// A segment's share of the buckets is proportional to its duration, at least one.
static size_t share_of(const struct chart_work *work, size_t segment, size_t most)
{
	double length_s = work->charts->axis.length_s, own_s = segment_duration_s(&work->run->segments[segment]);
	size_t n = length_s > 0 ? (size_t)((double)most * own_s / length_s) : 1;
	return n > 0 ? n : 1;
}

static size_t wanted_buckets(const struct chart_work *work, size_t segment, size_t most, bool *ret_at_samples)
{
	const struct run_segment *s = &work->run->segments[segment];
	if (s->end_ns <= s->start_ns)
		return 0;
	size_t share = share_of(work, segment, most);
	size_t cuts = count_cuts(work->run, s, slice_samples(work->run, segment));
	*ret_at_samples = cuts < share;
	if (*ret_at_samples)
		return cuts + 1;
	int64_t length_ns = s->end_ns - s->start_ns;
	return (int64_t)share < length_ns ? share : (size_t)length_ns; // a bucket lasts at least 1 ns
}

static double pause_s(const struct run *run, size_t segment)
{
	if (segment == 0)
		return 0;
	const struct run_segment *s = &run->segments[segment], *before = s - 1;
	if (!value_ok(s->wall_start_ns) || !value_ok(before->wall_start_ns))
		return (double)NAN;
	double pause = seconds_between(run_wall_ns(run, before->end_ns), s->wall_start_ns);
	return pause > 0 ? pause : 0; // the wall clock can have been set back
}

static void place_segments(const struct run *run, struct chart_axis *axis)
{
	double at_s = 0;
	for (size_t s = 0; s < run->n_segments; s++) {
		const struct run_segment *segment = &run->segments[s];
		double length_s = segment_duration_s(segment);
		axis->segments[s] = (struct chart_segment){.from_s = at_s,
			.to_s = at_s + length_s,
			.start_ns = segment->start_ns,
			.wall_start_ns = run_wall_ns(run, segment->start_ns),
			.pause_s = pause_s(run, s)};
		at_s += length_s;
	}
	axis->n_segments = run->n_segments;
	axis->length_s = at_s;
}

static void place_sleeps(const struct run *run, struct chart_axis *axis)
{
	for (size_t i = 0; i < run->n_sleeps; i++)
		axis->sleeps[i] = (struct chart_sleep){.at_s = chart_axis_s(axis, run->sleeps[i].t_ns),
			.slept_s = (double)run->sleeps[i].slept_ns / 1e9};
	axis->n_sleeps = run->n_sleeps;
}

int axis_make(struct chart_work *work, size_t max_buckets)
{
	const struct run *run = work->run;
	struct chart_axis *axis = &work->charts->axis;
	axis->segments = arena_alloc(work->arena, run->n_segments, sizeof(*axis->segments));
	work->buckets = arena_alloc(work->scratch, run->n_segments, sizeof(*work->buckets));
	axis->sleeps = arena_alloc(work->arena, run->n_sleeps, sizeof(*axis->sleeps));
	if (axis->segments == NULL || axis->sleeps == NULL || work->buckets == NULL)
		return -ENOMEM;
	place_segments(run, axis);
	place_sleeps(run, axis);
	size_t capacity = 0;
	bool at_samples = false;
	for (size_t s = 0; s < run->n_segments; s++)
		capacity += wanted_buckets(work, s, max_buckets, &at_samples);
	axis->from_s = arena_alloc(work->arena, capacity, sizeof(double));
	axis->to_s = arena_alloc(work->arena, capacity, sizeof(double));
	work->from_ns = arena_alloc(work->scratch, capacity, sizeof(int64_t));
	work->to_ns = arena_alloc(work->scratch, capacity, sizeof(int64_t));
	if (axis->from_s == NULL || axis->to_s == NULL || work->from_ns == NULL || work->to_ns == NULL)
		return -ENOMEM;
	for (size_t s = 0; s < run->n_segments; s++) {
		size_t n = wanted_buckets(work, s, max_buckets, &at_samples);
		work->buckets[s] = (struct slice){axis->n, axis->n};
		if (n > 0 && at_samples)
			cut_at_samples(work, s, slice_samples(run, s));
		else if (n > 0)
			cut_evenly(work, s, n);
	}
	return 0;
}

/* ---- instants ---- */

double chart_axis_s(const struct chart_axis *axis, int64_t t_ns)
{
	double at_s = 0;
	for (size_t s = 0; s < axis->n_segments; s++) {
		const struct chart_segment *segment = &axis->segments[s];
		if (t_ns < segment->start_ns)
			return s > 0 ? segment->from_s : 0;
		at_s = fmin(segment->from_s + seconds_between(segment->start_ns, t_ns), segment->to_s);
		if (at_s < segment->to_s)
			return at_s;
	}
	return at_s;
}

// The segment that contains an instant of the axis; the later one at a boundary.
static const struct chart_segment *segment_at(const struct chart_axis *axis, double at_s)
{
	const struct chart_segment *found = NULL;
	for (size_t s = 0; s < axis->n_segments; s++)
		if (found == NULL || axis->segments[s].from_s <= at_s)
			found = &axis->segments[s];
	return found;
}

static int64_t within_ns(const struct chart_segment *segment, double at_s)
{
	double s = fmin(fmax(at_s, segment->from_s), segment->to_s) - segment->from_s;
	return llround(s * 1e9);
}

int64_t chart_axis_t_ns(const struct chart_axis *axis, double at_s)
{
	const struct chart_segment *segment = segment_at(axis, at_s);
	return segment != NULL ? segment->start_ns + within_ns(segment, at_s) : 0;
}

int64_t chart_axis_wall_ns(const struct chart_axis *axis, double at_s)
{
	const struct chart_segment *segment = segment_at(axis, at_s);
	if (segment == NULL || !value_ok(segment->wall_start_ns))
		return VALUE_MISSING;
	int64_t wall_ns = segment->wall_start_ns + within_ns(segment, at_s);
	for (size_t i = 0; i < axis->n_sleeps; i++)
		if (axis->sleeps[i].at_s > segment->from_s && axis->sleeps[i].at_s <= at_s)
			wall_ns += llround(axis->sleeps[i].slept_s * 1e9);
	return wall_ns;
}
