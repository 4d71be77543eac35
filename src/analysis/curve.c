#include "analysis/curve.h"

#include "base/util.h"

#include <errno.h>

struct builder {
	const struct run *run;
	const struct run_device *device;
	int64_t hole_ns; // longer pauses are holes
	struct curve *curve;
	int64_t last_change_ns;
	size_t changes;
};

static void add_point(struct curve *curve, int64_t t_ns, double j)
{
	curve->t_ns[curve->n] = t_ns;
	curve->j[curve->n++] = j;
}

static void add_hole(struct curve *curve, int64_t from_ns, int64_t to_ns)
{
	if (to_ns <= from_ns)
		return;
	double s = (double)(to_ns - from_ns) / 1e9;
	curve->hole_s += s;
	curve->hole_squares_s2 += s * s;
}

/* Runs of samples without a reading. A first power reading that comes a little late is none: a load model needs two
 * readings of the load before it can speak, and the time before is covered. */
static void count_missing(struct builder *b, size_t segment, struct slice samples, const int64_t *values)
{
	size_t i = samples.begin;
	while (b->curve->from_power && i < samples.end && !value_ok(values[i]))
		i++;
	bool late = i < samples.end && b->device->t_ns[i] - b->run->segments[segment].start_ns > b->hole_ns;
	bool never = i == samples.end && samples.begin < samples.end;
	b->curve->missing_runs += i > samples.begin && (late || never);
	for (; i < samples.end; i++)
		if (!value_ok(values[i]) && (i == samples.begin || value_ok(values[i - 1])))
			b->curve->missing_runs++;
}

static void note_change(struct builder *b, int64_t t_ns)
{
	double step_s = (double)(t_ns - b->last_change_ns) / 1e9;
	// The first change of a segment tells nothing: the one before it was not seen.
	if (b->changes++ >= 1 && !(step_s >= b->curve->smallest_step_s))
		b->curve->smallest_step_s = step_s;
	b->last_change_ns = t_ns;
}

// One segment of an extended counter; returns the energy at its end.
static double counter_segment(struct builder *b, size_t segment, struct slice samples, double start_j)
{
	struct curve *curve = b->curve;
	const int64_t *uj = b->device->values[DEVICE_ENERGY], *t_ns = b->device->t_ns;
	size_t first_point = curve->n;
	int64_t last_uj = 0, last_t_ns = 0;
	double j = start_j;
	b->changes = 0;
	for (size_t i = samples.begin; i < samples.end; i++) {
		if (!value_ok(uj[i]))
			continue;
		bool first = curve->n == first_point, moved = !first && uj[i] > last_uj;
		if (moved) {
			j += ((double)uj[i] - (double)last_uj) / 1e6;
			note_change(b, t_ns[i]);
		}
		if (first || moved)
			add_point(curve, t_ns[i], j);
		last_uj = uj[i];
		last_t_ns = t_ns[i];
	}
	const struct run_segment *s = &b->run->segments[segment];
	if (curve->n == first_point) {
		add_hole(curve, s->start_ns, s->end_ns);
		return j;
	}
	if (last_t_ns > curve->t_ns[curve->n - 1])
		add_point(curve, last_t_ns, j);
	add_hole(curve, s->start_ns, curve->t_ns[first_point]);
	add_hole(curve, last_t_ns, s->end_ns);
	return j;
}

// Variance of the trapezoid rule around a reading, from the second difference there: h^3 / 12 times the curvature.
static double trapezoid_error_j(const double t_s[3], const double w[3])
{
	double before_s = t_s[1] - t_s[0], after_s = t_s[2] - t_s[1], h_s = (before_s + after_s) / 2;
	double curvature = ((w[2] - w[1]) / after_s - (w[1] - w[0]) / before_s) / h_s;
	return h_s * h_s * h_s / 12 * curvature;
}

struct power_reading {
	int64_t t_ns;
	double w;
};

// A point at t_ns, `dt_ns` after the one before, with this mean power over the time between.
static void add_power_point(struct curve *curve, int64_t t_ns, int64_t dt_ns, double mean_w)
{
	double before_j = curve->n > 0 ? curve->j[curve->n - 1] : 0;
	add_point(curve, t_ns, before_j + mean_w * (double)dt_ns / 1e9);
}

// The first reading stands also for the short time between the target's start and itself.
static void power_begins(struct builder *b, const struct run_segment *segment, struct power_reading reading)
{
	int64_t early_ns = reading.t_ns - segment->start_ns;
	double before_j = b->curve->n > 0 ? b->curve->j[b->curve->n - 1] : 0;
	if (early_ns > b->hole_ns)
		add_hole(b->curve, segment->start_ns, reading.t_ns);
	if (early_ns <= 0 || early_ns > b->hole_ns) {
		add_point(b->curve, reading.t_ns, before_j);
		return;
	}
	add_point(b->curve, segment->start_ns, before_j);
	add_power_point(b->curve, reading.t_ns, early_ns, reading.w);
}

static void power_ends(struct builder *b, const struct run_segment *segment, struct power_reading reading)
{
	int64_t late_ns = segment->end_ns - reading.t_ns;
	if (late_ns > b->hole_ns)
		add_hole(b->curve, reading.t_ns, segment->end_ns);
	else if (late_ns > 0)
		add_power_point(b->curve, segment->end_ns, late_ns, reading.w);
}

static void power_goes_on(struct builder *b, struct power_reading before, struct power_reading now,
	bool readings_missing)
{
	int64_t dt_ns = now.t_ns - before.t_ns;
	if (dt_ns <= b->hole_ns) {
		add_power_point(b->curve, now.t_ns, dt_ns, (before.w + now.w) / 2);
		return;
	}
	add_hole(b->curve, before.t_ns, now.t_ns);
	b->curve->long_holes += !readings_missing;
	add_power_point(b->curve, now.t_ns, dt_ns, 0);
}

static void add_rounding(struct builder *b, const struct power_reading last[3])
{
	double t_s[3], w[3];
	for (int i = 0; i < 3; i++) {
		t_s[i] = (double)(last[i].t_ns - last[0].t_ns) / 1e9;
		w[i] = last[i].w;
	}
	bool near = last[2].t_ns - last[1].t_ns <= b->hole_ns && last[1].t_ns - last[0].t_ns <= b->hole_ns;
	if (!near || !(t_s[1] > 0) || !(t_s[2] > t_s[1]))
		return;
	double error_j = trapezoid_error_j(t_s, w);
	b->curve->rounding_j2 += error_j * error_j;
}

static void power_segment(struct builder *b, size_t segment, struct slice samples)
{
	const int64_t *mw = b->device->values[DEVICE_POWER];
	const struct run_segment *s = &b->run->segments[segment];
	struct power_reading last[3] = {0};
	size_t n = 0, last_index = 0;
	for (size_t i = samples.begin; i < samples.end; i++) {
		if (!value_ok(mw[i]))
			continue;
		struct power_reading now = {b->device->t_ns[i], (double)mw[i] / 1e3};
		if (n == 0)
			power_begins(b, s, now);
		else
			power_goes_on(b, last[2], now, i > last_index + 1);
		last[0] = last[1];
		last[1] = last[2];
		last[2] = now;
		last_index = i;
		if (++n >= 3)
			add_rounding(b, last);
	}
	if (n > 0)
		power_ends(b, s, last[2]);
	else
		add_hole(b->curve, s->start_ns, s->end_ns);
}

// Two values of a counter in one segment make a difference; one value makes none.
static bool counter_speaks(const struct run *run, const struct run_device *device)
{
	for (size_t s = 0; s < run->n_segments; s++) {
		struct slice samples = slice_of(run, s, device->t_ns, device->n);
		size_t known = 0;
		for (size_t i = samples.begin; i < samples.end && known < 2; i++)
			known += value_ok(device->values[DEVICE_ENERGY][i]);
		if (known == 2)
			return true;
	}
	return false;
}

static void scan_power(const struct run_device *device, struct curve *curve)
{
	const int64_t *mw = device->values[DEVICE_POWER];
	for (size_t i = 0; i < device->n; i++)
		if (value_ok(mw[i]) && !((double)mw[i] / 1e3 <= curve->max_power_w))
			curve->max_power_w = (double)mw[i] / 1e3;
}

// Energy at an instant between points first … end - 1.
static double between(const struct curve *curve, struct slice points, int64_t t_ns)
{
	size_t after = points.begin + slice_lower_bound(curve->t_ns + points.begin, points.end - points.begin, t_ns);
	if (after == points.begin)
		return curve->j[points.begin];
	if (after == points.end)
		return curve->j[points.end - 1];
	double part = (double)(t_ns - curve->t_ns[after - 1]) / (double)(curve->t_ns[after] - curve->t_ns[after - 1]);
	return curve->j[after - 1] + part * (curve->j[after] - curve->j[after - 1]);
}

static void clip_start(struct curve *curve, size_t begin, int64_t start_ns)
{
	struct slice points = {begin, curve->n};
	if (begin == curve->n || curve->t_ns[begin] >= start_ns)
		return;
	double first_j = curve->j[begin], early_j = between(curve, points, start_ns) - first_j;
	size_t after = begin + slice_lower_bound(curve->t_ns + begin, curve->n - begin, start_ns);
	curve->t_ns[begin] = start_ns;
	size_t n = begin + 1;
	for (size_t i = after; i < points.end; i++, n++) {
		curve->t_ns[n] = curve->t_ns[i];
		curve->j[n] = curve->j[i] - early_j;
	}
	curve->n = n;
}

static void clip_end(struct curve *curve, size_t begin, int64_t end_ns)
{
	if (begin == curve->n || curve->t_ns[curve->n - 1] <= end_ns || curve->t_ns[begin] >= end_ns)
		return;
	struct slice points = {begin, curve->n};
	double last_j = between(curve, points, end_ns);
	size_t after = begin + slice_lower_bound(curve->t_ns + begin, curve->n - begin, end_ns);
	curve->t_ns[after] = end_ns;
	curve->j[after] = last_j;
	curve->n = after + 1;
}

static void segment_points(struct builder *b, size_t segment)
{
	struct curve *curve = b->curve;
	struct slice samples = slice_of(b->run, segment, b->device->t_ns, b->device->n);
	size_t begin = curve->n;
	if (curve->from_power)
		power_segment(b, segment, samples);
	else
		counter_segment(b, segment, samples, curve_total_j(curve));
	count_missing(b, segment, samples, b->device->values[curve->from_power ? DEVICE_POWER : DEVICE_ENERGY]);
	// What was used before the target started and after it had ended is not the run's.
	clip_start(curve, begin, b->run->segments[segment].start_ns);
	clip_end(curve, begin, b->run->segments[segment].end_ns);
	curve->segments[segment] = (struct slice){begin, curve->n};
}

static double mean_distance_s(const struct run *run, const struct run_device *device)
{
	double span_s = 0;
	size_t steps = 0;
	for (size_t s = 0; s < run->n_segments; s++) {
		struct slice samples = slice_of(run, s, device->t_ns, device->n);
		if (samples.end - samples.begin < 2)
			continue;
		span_s += (double)(device->t_ns[samples.end - 1] - device->t_ns[samples.begin]) / 1e9;
		steps += samples.end - samples.begin - 1;
	}
	return steps > 0 ? span_s / (double)steps : (double)NAN;
}

int curve_make(const struct run *run, const struct run_device *device, int64_t interval_ns, struct arena *arena,
	struct curve *ret_curve)
{
	// Power may add a point at both ends of each segment.
	size_t room = device->n + 2 * run->n_segments;
	*ret_curve = (struct curve){
		.t_ns = arena_alloc(arena, room, sizeof(int64_t)),
		.j = arena_alloc(arena, room, sizeof(double)),
		.segments = arena_alloc(arena, run->n_segments, sizeof(struct slice)),
		.smallest_step_s = (double)NAN,
		.max_power_w = (double)NAN,
		.sample_s = mean_distance_s(run, device),
	};
	if (ret_curve->t_ns == NULL || ret_curve->j == NULL || ret_curve->segments == NULL)
		return -ENOMEM;
	scan_power(device, ret_curve);
	ret_curve->from_power = !counter_speaks(run, device);
	int64_t hole_ns = value_ok(interval_ns) && interval_ns > NS_PER_S / 5 ? 5 * interval_ns : NS_PER_S;
	struct builder b = {.run = run, .device = device, .hole_ns = hole_ns, .curve = ret_curve};
	for (size_t s = 0; s < run->n_segments; s++)
		segment_points(&b, s);
	ret_curve->known = ret_curve->n > 0 && !(ret_curve->n == 1 && ret_curve->from_power);
	return 0;
}

double curve_at(const struct curve *curve, size_t segment, int64_t t_ns)
{
	struct slice points = curve->segments[segment];
	if (points.begin == points.end)
		return points.begin > 0 ? curve->j[points.begin - 1] : 0;
	return between(curve, points, t_ns);
}

double curve_power_w(const struct curve *curve, size_t segment, int64_t from_ns, int64_t to_ns)
{
	struct slice points = curve->segments[segment];
	if (points.begin == points.end)
		return (double)NAN;
	int64_t first_ns = curve->t_ns[points.begin], last_ns = curve->t_ns[points.end - 1];
	from_ns = from_ns > first_ns ? from_ns : first_ns;
	to_ns = to_ns < last_ns ? to_ns : last_ns;
	if (to_ns <= from_ns)
		return (double)NAN;
	double j = curve_at(curve, segment, to_ns) - curve_at(curve, segment, from_ns);
	return j / ((double)(to_ns - from_ns) / 1e9);
}

double curve_total_j(const struct curve *curve)
{
	return curve->n > 0 ? curve->j[curve->n - 1] : 0;
}
