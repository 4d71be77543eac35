#include "energy/curve.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "energy/internal.h"
#include "energy/slice.h"

#include <errno.h>

void curve_add_point(struct curve *curve, int64_t t_ns, double j, double within_s)
{
	curve->t_ns[curve->n] = t_ns;
	curve->within_s[curve->n] = within_s;
	curve->j[curve->n++] = j;
}

void curve_add_hole(struct curve *curve, int64_t from_ns, int64_t to_ns)
{
	if (to_ns <= from_ns)
		return;
	double s = (double)(to_ns - from_ns) / 1e9;
	curve->hole_s += s;
	curve->hole_squares_s2 += s * s;
}

/* ---- reading ---- */

static int64_t within(int64_t t_ns, int64_t low_ns, int64_t high_ns)
{
	t_ns = t_ns < low_ns ? low_ns : t_ns;
	return t_ns > high_ns ? high_ns : t_ns;
}

// `after`: the first point not before the instant.
static double line_before(const struct curve *curve, const struct curve_segment *segment, size_t after, int64_t t_ns)
{
	struct slice points = segment->points;
	if (after == points.begin)
		return curve->j[after] - segment->first_w * seconds_between(t_ns, curve->t_ns[after]);
	if (after == points.end)
		return curve->j[after - 1] + segment->last_w * seconds_between(curve->t_ns[after - 1], t_ns);
	double part = seconds_between(curve->t_ns[after - 1], t_ns) /
		seconds_between(curve->t_ns[after - 1], curve->t_ns[after]);
	return curve->j[after - 1] + part * (curve->j[after] - curve->j[after - 1]);
}

double curve_line_near(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns, size_t point)
{
	struct slice points = segment->points;
	if (points.begin == points.end)
		return 0;
	t_ns = within(t_ns, segment->first_ns, segment->last_ns);
	size_t after = points.begin +
		slice_lower_bound_near(curve->t_ns + points.begin, points.end - points.begin, t_ns,
			point - points.begin);
	return line_before(curve, segment, after, t_ns);
}

double curve_line_at(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns)
{
	size_t middle = segment->points.begin + (segment->points.end - segment->points.begin) / 2;
	return curve_line_near(curve, segment, t_ns, middle);
}

double curve_at(const struct curve *curve, size_t index, int64_t t_ns)
{
	const struct curve_segment *segment = &curve->segments[index];
	t_ns = t_ns < segment->start_ns ? segment->start_ns : t_ns;
	t_ns = t_ns > segment->end_ns ? segment->end_ns : t_ns;
	return segment->offset_j + curve_line_at(curve, segment, t_ns);
}

// Selects the line before a point, or the one beyond the last point.
static void take_line(struct curve_walk *walk, const struct curve_segment *segment)
{
	const struct curve *curve = walk->curve;
	struct slice points = segment->points;
	size_t after = walk->after, from = after > points.begin ? after - 1 : after;
	walk->from_ns = curve->t_ns[from];
	walk->from_j = curve->j[from];
	if (after == points.begin)
		walk->slope_w = segment->first_w;
	else if (after == points.end)
		walk->slope_w = segment->last_w;
	else
		walk->slope_w = (curve->j[after] - curve->j[from]) /
			seconds_between(curve->t_ns[from], curve->t_ns[after]);
}

double curve_walk_to(struct curve_walk *walk, size_t index, int64_t t_ns)
{
	const struct curve *curve = walk->curve;
	const struct curve_segment *segment = &curve->segments[index];
	struct slice points = segment->points;
	bool other = !walk->any || walk->segment != index;
	if (!other && t_ns == walk->t_ns) // the end of one window is the begin of the next one
		return segment->offset_j + walk->line_j;
	walk->t_ns = within(t_ns, segment->start_ns, segment->end_ns);
	walk->line_j = 0;
	walk->any = true;
	walk->segment = index;
	if (points.begin == points.end)
		return segment->offset_j;
	walk->t_ns = within(walk->t_ns, segment->first_ns, segment->last_ns);
	size_t after = other ? points.begin : walk->after;
	while (after < points.end && curve->t_ns[after] < walk->t_ns)
		after++;
	if (other || after != walk->after) {
		walk->after = after;
		take_line(walk, segment);
	}
	walk->line_j = walk->from_j + walk->slope_w * seconds_between(walk->from_ns, walk->t_ns);
	return segment->offset_j + walk->line_j;
}

// Clips the times to the target's life and the line.
static bool has_line(const struct curve_segment *segment, int64_t *from_ns, int64_t *to_ns)
{
	const int64_t lows[] = {segment->start_ns, segment->first_ns}, highs[] = {segment->end_ns, segment->last_ns};
	if (segment->points.begin == segment->points.end)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(lows); i++) {
		*from_ns = *from_ns > lows[i] ? *from_ns : lows[i];
		*to_ns = *to_ns < highs[i] ? *to_ns : highs[i];
	}
	return *to_ns > *from_ns;
}

double curve_walk_power_w(struct curve_walk *walk, size_t index, int64_t from_ns, int64_t to_ns)
{
	if (!has_line(&walk->curve->segments[index], &from_ns, &to_ns))
		return (double)NAN;
	double from_j = curve_walk_to(walk, index, from_ns);
	return (curve_walk_to(walk, index, to_ns) - from_j) / seconds_between(from_ns, to_ns);
}

double curve_power_w(const struct curve *curve, size_t index, int64_t from_ns, int64_t to_ns)
{
	if (!has_line(&curve->segments[index], &from_ns, &to_ns))
		return (double)NAN;
	return (curve_at(curve, index, to_ns) - curve_at(curve, index, from_ns)) / seconds_between(from_ns, to_ns);
}

double curve_total_j(const struct curve *curve)
{
	if (curve->n_segments == 0)
		return 0;
	return curve_at(curve, curve->n_segments - 1, curve->segments[curve->n_segments - 1].end_ns);
}

/* ---- construction ---- */

/* Runs of samples without a reading. A first power reading that is slightly late is not counted: a load model needs two
 * readings of the load before it has a value, and the time before is covered. */
static void count_missing(struct curve_builder *b, size_t segment, struct slice samples)
{
	struct run_values values = b->curve->from_power ? b->power_mw : device_column(b->device, DEVICE_ENERGY);
	size_t i = samples.begin;
	while (b->curve->from_power && i < samples.end && !value_ok(values_at(values, i)))
		i++;
	bool late = i < samples.end && b->device->t_ns[i] - b->curve->segments[segment].start_ns > b->hole_ns;
	bool never = i == samples.end && samples.begin < samples.end;
	b->curve->missing_runs += i > samples.begin && (late || never);
	bool before_ok = true;
	for (; i < samples.end; i++) {
		bool ok = value_ok(values_at(values, i));
		// Between two samples the recorder takes quick counter readings without power.
		if (!ok && b->curve->from_power && !curve_was_sampled(b->run, b->device->t_ns[i]))
			continue;
		b->curve->missing_runs += !ok && before_ok;
		before_ok = ok;
	}
}

bool curve_was_sampled(const struct run *run, int64_t t_ns)
{
	size_t at = slice_lower_bound(run->t_ns, run->n, t_ns);
	return at < run->n && run->t_ns[at] == t_ns;
}

/* The part of a segment in which some recorder could read the device. If a rank took the device over from another, it is that
 * rank's own part. */
static void set_life(struct curve_builder *b, size_t index, struct curve_segment *segment)
{
	const struct run_segment *s = &b->run->segments[index];
	const int64_t *seen_ns = b->device->seen_ns;
	segment->start_ns = s->start_ns;
	segment->end_ns = s->end_ns > s->start_ns ? s->end_ns : s->start_ns;
	double whole_s = seconds_between(segment->start_ns, segment->end_ns);
	int64_t start_ns = segment->start_ns, end_ns = segment->end_ns;
	int64_t seen_from_ns = seen_ns != NULL ? seen_ns[2 * index]
					       : sensor_owner_own_from_ns(b->run, b->device, index);
	segment->start_ns = within(seen_from_ns, start_ns, end_ns);
	segment->end_ns = within(seen_ns != NULL ? seen_ns[2 * index + 1] : end_ns, segment->start_ns, end_ns);
	b->curve->outside_s += whole_s - seconds_between(segment->start_ns, segment->end_ns);
}

static void make_segment(struct curve_builder *b, size_t index)
{
	struct curve *curve = b->curve;
	struct slice samples = slice_of(b->run, index, b->device->t_ns, b->device->n);
	double before_j = index > 0 ? curve_at(curve, index - 1, curve->segments[index - 1].end_ns) : 0;
	struct curve_segment *segment = &curve->segments[index];
	*segment = (struct curve_segment){.points = {curve->n, curve->n}};
	set_life(b, index, segment);
	if (curve->from_power)
		curve_power_segment(b, index, samples);
	else
		curve_counter_segment(b, index, samples);
	count_missing(b, index, samples);
	// Energy used before the target's start does not belong to the run.
	segment->offset_j = before_j - curve_line_at(curve, segment, segment->start_ns);
}

static double max_power_w(const struct run_device *device, struct run_values power_mw)
{
	double max_w = (double)NAN;
	for (size_t i = 0; i < device->n && values_any(power_mw); i++) {
		int64_t mw = values_at(power_mw, i);
		if (value_ok(mw) && !((double)mw / 1e3 <= max_w))
			max_w = (double)mw / 1e3;
	}
	return max_w;
}

static double slope_w(const struct curve *curve, size_t point)
{
	return (curve->j[point + 1] - curve->j[point]) / seconds_between(curve->t_ns[point], curve->t_ns[point + 1]);
}

// Time-weighted root mean square, so that a few readings close together, whose slopes are noise, have little weight.
static double step_w(const struct curve *curve)
{
	double squares = 0, time_s = 0;
	for (size_t s = 0; s < curve->n_segments; s++) {
		struct slice points = curve->segments[s].points;
		for (size_t k = points.begin; k + 2 < points.end; k++) {
			double before_s = seconds_between(curve->t_ns[k], curve->t_ns[k + 1]);
			double after_s = seconds_between(curve->t_ns[k + 1], curve->t_ns[k + 2]);
			double weight_s = before_s < after_s ? before_s : after_s;
			double change_w = slope_w(curve, k + 1) - slope_w(curve, k);
			squares += change_w * change_w * weight_s;
			time_s += weight_s;
		}
	}
	return time_s > 0 ? sqrt(squares / time_s) : 0;
}

// One reading of a power meter is an instantaneous value; one of the model is the mean since the start of the recording.
static bool is_known(const struct curve_builder *b)
{
	const struct curve *curve = b->curve;
	if (curve->n != 1 || !curve->from_power)
		return curve->n > 0;
	return b->device->provenance == PROVENANCE_ESTIMATED && !(curve->hole_s > 0);
}

static int make(struct curve_builder *b)
{
	struct curve *curve = b->curve;
	wattle_cleanup_free struct curve_bracket *brackets = calloc_array(b->device->n, sizeof(*brackets));
	b->brackets = brackets;
	if (brackets == NULL)
		return -ENOMEM;
	for (size_t s = 0; s < b->run->n_segments; s++, curve->n_segments++)
		make_segment(b, s);
	curve->known = is_known(b);
	curve->step_w = step_w(curve);
	return 0;
}

static bool has_power(const struct run_device *device, enum device_metric metric)
{
	struct run_values values = device_column(device, metric);
	for (size_t i = 0; i < device->n && values_any(values); i++)
		if (value_ok(values_at(values, i)))
			return true;
	return false;
}

static int prepare(struct curve_builder *b, int64_t interval_ns, const struct updates *updates, struct arena *arena)
{
	const struct run_device *device = b->device;
	enum device_metric power = has_power(device, DEVICE_POWER) ? DEVICE_POWER : DEVICE_POWER_AVERAGE;
	b->power_mw = device_column(device, power);
	b->hole_ns = curve_hole_ns(interval_ns);
	size_t capacity = device->n + 2 * b->run->n_segments; // the ends of each segment may become points
	*b->curve = (struct curve){
		.t_ns = arena_alloc(arena, capacity, sizeof(int64_t)),
		.j = arena_alloc(arena, capacity, sizeof(double)),
		.within_s = arena_alloc(arena, capacity, sizeof(double)),
		.segments = arena_alloc(arena, b->run->n_segments, sizeof(struct curve_segment)),
		.max_power_w = max_power_w(device, b->power_mw),
	};
	if (b->curve->t_ns == NULL || b->curve->j == NULL || b->curve->within_s == NULL || b->curve->segments == NULL)
		return -ENOMEM;
	if (updates == NULL)
		return updates_make(b->run, device, interval_ns, &b->curve->updates);
	b->curve->updates = *updates;
	return 0;
}

static const double mean_long_s = 1, mean_prompt_s = 0.1, update_usual_s = 0.1;

/* nvmlDeviceGetPowerUsage is a one-second mean on Ampere (except GA100) and later. Power meters of boards, modules and walls
 * average over a similar time; CPU packages and the load model do not. If a device reports both figures and they differ, its
 * power reading is the faster one (NVML field 186), which is still a mean of about 100 ms on cards from Turing to Ada (arXiv
 * 2312.02741). */
static double average_s(const struct run_device *device)
{
	struct run_values power = device_column(device, DEVICE_POWER),
			  average = device_column(device, DEVICE_POWER_AVERAGE);
	if (device->kind == DOMAIN_PACKAGE || device->kind == DOMAIN_CORE || device->kind == DOMAIN_UNCORE ||
		device->kind == DOMAIN_DRAM || device->provenance == PROVENANCE_ESTIMATED)
		return 0;
	for (size_t i = 0; i < device->n && values_any(average); i++)
		if (value_ok(values_at(power, i)) && value_ok(values_at(average, i)) &&
			values_at(power, i) != values_at(average, i))
			return mean_prompt_s;
	return mean_long_s;
}

int curve_make_from_power(const struct run *run, const struct run_device *device, int64_t interval_ns,
	const struct updates *updates, struct arena *arena, struct curve *ret_curve)
{
	struct curve_builder b = {.run = run, .device = device, .curve = ret_curve};
	if (prepare(&b, interval_ns, updates, arena) < 0)
		return -ENOMEM;
	ret_curve->from_power = true;
	ret_curve->average_s = average_s(device);
	ret_curve->held_s = ret_curve->average_s > 0 ? update_usual_s : 0;
	if (device->update_period_s > 0)
		ret_curve->held_s = device->update_period_s;
	if (ret_curve->average_s > 0) // the averaging time is at least the update period
		ret_curve->average_s = fmax(ret_curve->average_s, ret_curve->held_s);
	return make(&b);
}

static const double stuck_checked_min = 0.5; // fraction of the run

/* Handles a counter that never changed. An integrated GPU may be switched off for long. A package always uses energy, so its
 * counter is stuck. If the run is too short to decide, the energy was less than one update. */
static void check_stuck(struct curve *curve, const struct run_device *device, double run_s)
{
	bool watched = curve->silent_s > stuck_checked_min * run_s; // only a silence over most of the run is evidence
	if (!watched || (curve->stalled_s > 0 && device->kind != DOMAIN_UNCORE))
		return;
	bool too_short = curve->stalled_s == 0;
	curve->known = true;
	curve->unseen_s = too_short ? fmin(run_s, curve->updates.longest_s) : 0;
	curve->stalled_s = curve->hole_s = curve->hole_squares_s2 = 0;
}

static int make_from_counter(const struct run *run, const struct run_device *device, int64_t interval_ns,
	struct arena *arena, struct curve *ret_curve)
{
	struct curve_builder b = {.run = run, .device = device, .curve = ret_curve};
	if (prepare(&b, interval_ns, NULL, arena) < 0)
		return -ENOMEM;
	bool power = has_power(device, DEVICE_POWER), average = has_power(device, DEVICE_POWER_AVERAGE);
	ret_curve->readings = (struct power_readings){.n = power || average ? device->n : 0,
		.t_ns = device->t_ns,
		.mw = b.power_mw};
	if (power_readings_index(&ret_curve->readings, arena) < 0 || make(&b) < 0)
		return -ENOMEM;
	ret_curve->known = curve_counter_changes(run, device);
	if (!ret_curve->known)
		check_stuck(ret_curve, device, run_duration_s(run));
	return 0;
}

int curve_make(const struct run *run, const struct run_device *device, int64_t interval_ns, struct arena *arena,
	struct curve *ret_curve)
{
	bool power = has_power(device, DEVICE_POWER) || has_power(device, DEVICE_POWER_AVERAGE);
	if (!device->has_energy)
		return curve_make_from_power(run, device, interval_ns, NULL, arena, ret_curve);
	if (make_from_counter(run, device, interval_ns, arena, ret_curve) < 0)
		return -ENOMEM;
	bool stuck = ret_curve->stalled_s * 1e3 >= CURVE_STUCK_MIN_MS;
	if (!power || (ret_curve->known && !stuck && ret_curve->unseen_s == 0))
		return 0;
	double stalled_s = ret_curve->stalled_s;
	const struct updates updates = ret_curve->updates;
	if (curve_make_from_power(run, device, interval_ns, &updates, arena, ret_curve) < 0)
		return -ENOMEM;
	ret_curve->stalled_s = stalled_s;
	return 0;
}
