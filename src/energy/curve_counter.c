/* Converts the readings of an energy counter to points. A reading at t shows the energy at the counter's last update. That
 * update came at most one period before t, and after the previous reading if that one showed another value. Each new value is
 * therefore an update within a time bracket. Its point is in the middle and has half of the bracket as its uncertainty.
 *
 * Brackets constrain each other: if an update directly follows another, it came one period later, within the jitter. A few
 * readings close together (the recorder takes them at the start, at the end and occasionally in between) therefore sharpen
 * the adjacent brackets, including that of the update before the first reading. The rule is not applied where it contradicts
 * itself because the period was different at that time. */
#include "energy/internal.h"

#include "base/util.h"

// A hardware time stamp is used if it is at most this many periods older than the reading with the stamp.
static const double stamp_age_periods = 5;
static const double stamp_age_min_s = 1;
/* Time stamps of values that wattle's helper read are those of its reads. The helper may read less often than it is asked, or
 * slightly later. The hardware updates these counters about every millisecond, so the value read may be this old. */
static const char *const read_stamped[] = {"powercap", "hwmon"};
static const int64_t READ_STAMP_LAG_NS = NS_PER_MS, READ_STAMP_LATE_NS = 100 * NS_PER_MS;

struct counter_walk {
	struct curve_builder *b;
	struct curve_bracket *at; // of this segment
	size_t n;
	int64_t period_ns, jitter_ns, longest_ns; // period_ns 0: unknown
	int64_t stamp_lag_ns;
	int64_t last_t_ns, last_uj; // the previous reading
	int64_t change_t_ns;        // time of the reading that showed the latest new value
};

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t stamp_lag_ns(const struct run_device *device)
{
	for (size_t i = 0; i < ARRAY_SIZE(read_stamped); i++)
		if (strcmp(device->source, read_stamped[i]) == 0)
			return READ_STAMP_LAG_NS;
	return 0;
}

static int64_t to_ns(double s)
{
	return isnan(s) ? 0 : llround(s * 1e9);
}

// Returns the counter's own time stamp; VALUE_MISSING if there is none or it is implausible.
static int64_t stamp_at(const struct counter_walk *walk, size_t sample)
{
	int64_t t_ns = walk->b->device->t_ns[sample],
		stamp_ns = device_value(walk->b->device, DEVICE_ENERGY_TIME, sample);
	double age_max_s = fmax(stamp_age_min_s, stamp_age_periods * (double)walk->longest_ns / 1e9);
	int64_t max_ns = walk->stamp_lag_ns > 0 ? t_ns + READ_STAMP_LATE_NS : t_ns;
	bool late = value_ok(stamp_ns) && stamp_ns <= max_ns && (double)(t_ns - stamp_ns) <= age_max_s * 1e9;
	bool after = walk->n == 0 || stamp_ns > walk->at[walk->n - 1].high_ns;
	return late && after ? stamp_ns : VALUE_MISSING;
}

static void add_bracket(struct counter_walk *walk, size_t sample, double j)
{
	int64_t t_ns = walk->b->device->t_ns[sample], stamp_ns = stamp_at(walk, sample);
	int64_t oldest_ns = walk->period_ns > 0 ? walk->period_ns : walk->longest_ns;
	struct curve_bracket bracket = {.low_ns = t_ns - oldest_ns, .high_ns = t_ns, .j = j};
	if (walk->n > 0) {
		// If power does not fill one step per update, the updates in between are invisible.
		double step_j = j - walk->at[walk->n - 1].j;
		bool moves = step_j >= 2 * walk->b->curve->updates.quantum_j;
		bracket.next = moves && t_ns - walk->last_t_ns < walk->period_ns - walk->jitter_ns;
		if (walk->last_t_ns > bracket.low_ns)
			bracket.low_ns = walk->last_t_ns;
	}
	if (value_ok(stamp_ns)) {
		int64_t before_ns = walk->n > 0 ? walk->at[walk->n - 1].high_ns : INT64_MIN;
		bracket.low_ns = later(stamp_ns - walk->stamp_lag_ns, before_ns);
		bracket.high_ns = stamp_ns;
		bracket.stamped = true;
	}
	walk->at[walk->n++] = bracket;
}

static void walk_readings(struct counter_walk *walk, struct slice samples)
{
	struct run_values column = device_column(walk->b->device, DEVICE_ENERGY);
	const int64_t *t_ns = walk->b->device->t_ns;
	double j = 0;
	for (size_t i = samples.begin; i < samples.end; i++) {
		int64_t uj = values_at(column, i);
		if (!value_ok(uj))
			continue;
		bool first = walk->n == 0, moved = !first && uj > walk->last_uj;
		if (moved)
			j += ((double)uj - (double)walk->last_uj) / 1e6;
		if (first || moved) {
			add_bracket(walk, i, j);
			walk->change_t_ns = t_ns[i];
		}
		walk->last_uj = uj;
		walk->last_t_ns = t_ns[i];
	}
}

// Two updates that are one period apart, within the jitter: each bracket bounds the other.
static void narrow(const struct counter_walk *walk, struct curve_bracket *before, struct curve_bracket *after)
{
	int64_t min_ns = walk->period_ns - walk->jitter_ns, max_ns = walk->period_ns + walk->jitter_ns;
	bool neighbours = after->next || after->high_ns - before->low_ns < 2 * min_ns;
	if (!neighbours || (before->stamped && after->stamped)) // stamps are more exact than the period
		return;
	int64_t after_low_ns = later(after->low_ns, before->low_ns + min_ns);
	int64_t after_high_ns = earlier(after->high_ns, before->high_ns + max_ns);
	int64_t before_low_ns = later(before->low_ns, after->low_ns - max_ns);
	int64_t before_high_ns = earlier(before->high_ns, after->high_ns - min_ns);
	if (after_low_ns > after_high_ns || before_low_ns > before_high_ns)
		return;
	after->low_ns = after_low_ns;
	after->high_ns = after_high_ns;
	before->low_ns = before_low_ns;
	before->high_ns = before_high_ns;
}

static void narrow_all(const struct counter_walk *walk)
{
	if (walk->period_ns <= 0)
		return;
	for (size_t k = 1; k < walk->n; k++)
		narrow(walk, &walk->at[k - 1], &walk->at[k]);
	for (size_t k = walk->n; k-- > 1;)
		narrow(walk, &walk->at[k - 1], &walk->at[k]);
}

static void add_points(const struct counter_walk *walk)
{
	struct curve *curve = walk->b->curve;
	int64_t before_ns = INT64_MIN;
	for (size_t k = 0; k < walk->n; k++) {
		const struct curve_bracket *u = &walk->at[k];
		int64_t width_ns = u->high_ns - u->low_ns, t_ns = u->low_ns + width_ns / 2;
		t_ns = later(t_ns, before_ns + 1); // two stamps or brackets may touch
		curve_add_point(curve, t_ns, u->j, (double)width_ns / 2e9);
		before_ns = t_ns;
	}
}

static double slope_w(const struct curve *curve, size_t from, size_t to)
{
	return (curve->j[to] - curve->j[from]) / ((double)(curve->t_ns[to] - curve->t_ns[from]) / 1e9);
}

/* Maximum plausible time without a change of value at this power: one update must come, and one step must fill. The result is
 * doubled because early detection is not needed. */
static int64_t timeout_ns(const struct counter_walk *walk, double power_w)
{
	double fill_s = power_w > 0 ? walk->b->curve->updates.quantum_j / power_w : 0;
	static const double for_ever_s = 1e9; // values of a damaged file may exceed the range of nanoseconds
	return to_ns(fmin(2 * ((double)walk->longest_ns / 1e9 + fill_s), for_ever_s));
}

/* Time before the first reading or after the last one. Of ranks that start together one reads, possibly not the first; a rank
 * that takes over is late on a busy node. If the time is not long enough for a gap, the adjacent power is assumed for it, and
 * all of its energy is uncertain. */
static bool take_unread(const struct counter_walk *walk, int64_t unread_ns, int64_t timeout)
{
	double s = (double)unread_ns / 1e9;
	if (unread_ns > timeout && unread_ns <= walk->b->hole_ns)
		walk->b->curve->hole_squares_s2 += s * s;
	return unread_ns <= later(timeout, walk->b->hole_ns);
}

static void begin_line(const struct counter_walk *walk, struct curve_segment *segment)
{
	const struct curve *curve = walk->b->curve;
	size_t first = segment->points.begin;
	segment->first_w = slope_w(curve, first, first + 1);
	segment->first_ns = curve->t_ns[first];
	if (!take_unread(walk, segment->first_ns - segment->start_ns, timeout_ns(walk, segment->first_w)))
		curve_add_hole(walk->b->curve, segment->start_ns, segment->first_ns);
	else
		segment->first_ns = earlier(segment->start_ns, segment->first_ns);
}

/* Time beyond the last observed update. If readings continued for long without another update, the counter stalled: either no
 * energy was used or the counter is stuck. Nothing is added then, and the time is a hole. */
static void end_line(const struct counter_walk *walk, struct curve_segment *segment)
{
	struct curve *curve = walk->b->curve;
	size_t last = segment->points.end - 1;
	int64_t timeout = timeout_ns(walk, slope_w(curve, last - 1, last));
	segment->last_w = slope_w(curve, last - 1, last);
	segment->last_ns = later(curve->t_ns[last], earlier(walk->last_t_ns, segment->end_ns));
	if (earlier(walk->last_t_ns, segment->end_ns) - walk->change_t_ns > timeout) {
		segment->last_w = 0;
		segment->last_ns = curve->t_ns[last];
		curve->stalled_s += (double)(segment->end_ns - segment->last_ns) / 1e9;
	} else if (take_unread(walk, segment->end_ns - walk->last_t_ns, timeout)) {
		segment->last_ns = later(segment->end_ns, segment->last_ns);
	}
	curve_add_hole(curve, segment->last_ns, segment->end_ns);
}

void curve_counter_segment(struct curve_builder *b, size_t index, struct slice samples)
{
	struct curve *curve = b->curve;
	struct curve_segment *segment = &curve->segments[index];
	struct counter_walk walk = {.b = b,
		.at = b->brackets,
		.period_ns = to_ns(curve->updates.period_s),
		.jitter_ns = to_ns(curve->updates.jitter_s),
		.longest_ns = to_ns(curve->updates.longest_s),
		.stamp_lag_ns = stamp_lag_ns(b->device)};
	walk_readings(&walk, samples);
	narrow_all(&walk);
	add_points(&walk);
	segment->points = (struct slice){curve->n - walk.n, curve->n};
	if (walk.n < 2) { // it never changed: the energy is unknown
		segment->first_ns = segment->last_ns = segment->start_ns;
		curve_add_hole(curve, segment->start_ns, segment->end_ns);
		curve->silent_s += (double)(walk.last_t_ns - walk.change_t_ns) / 1e9;
		if (walk.n == 1 &&
			walk.last_t_ns - walk.change_t_ns > later(timeout_ns(&walk, 0), CURVE_STUCK_MIN_MS * NS_PER_MS))
			curve->stalled_s += (double)(segment->end_ns - segment->start_ns) / 1e9;
		return;
	}
	begin_line(&walk, segment);
	end_line(&walk, segment);
	curve_bend_ends(b, segment, samples);
}

bool curve_counter_changes(const struct run *run, const struct run_device *device)
{
	for (size_t s = 0; s < run->n_segments; s++) {
		struct slice samples = slice_of(run, s, device->t_ns, device->n);
		int64_t first_uj = VALUE_MISSING;
		for (size_t i = samples.begin; i < samples.end; i++) {
			int64_t uj = device_value(device, DEVICE_ENERGY, i);
			if (value_ok(uj) && value_ok(first_uj) && uj > first_uj)
				return true;
			if (value_ok(uj) && (!value_ok(first_uj) || uj < first_uj))
				first_uj = uj;
		}
	}
	return false;
}
