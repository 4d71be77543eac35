/* Power changes exactly where a program starts and ends, which are the ends of its run, and these lie between two updates of
 * the counter. A straight line there would assign part of the program's energy to the idle machine, with the same sign in
 * every run. The stretch between the two updates is therefore bent at that instant. On the program's side it continues with
 * the power of the adjacent stretch of the run; the rest belongs to the other side.
 *
 *   end:    E(t) = E(a) + P (t - a), P of the stretch before a
 *   start:  E(t) = E(b) - P (b - t), P of the stretch after b
 *
 * The line is bent only where the program's side has the higher power. If the device also reads its power, a reading outside
 * the run must confirm it: the first sample, before the program was started, or the reading after the last quick read must be
 * lower than all of the eight nearest readings in the run. A load that continues and varies is then not bent. If power fell
 * at another moment instead, the true energy lies between the bent and the straight line (if it fell only once), so their
 * distance is the uncertainty. A run that starts and ends in one stretch is bent at both ends, with the power on either side
 * of it.
 *
 * If the readings were too far apart for that, or the run is too short, the line stays straight. The uncertainty is then all
 * of the energy between the instant and the update outside the run; for readings too far apart, at most the energy of the
 * inner part at the highest observed power. In all cases power may also have varied within the stretch: power_swing.c. */
#include "energy/internal.h"

#include "base/util.h"
#include "energy/curve.h"

static const double neighbours_max = 2;   // updates at most this many periods apart count as neighbours
static const double same_power = 0.02;    // relative; a smaller difference is noise
static const double same_mean = 0.03;     // fraction of the power of a stretch …
static const double same_mean_jump = 0.2; // … and of its difference from the adjacent power
static const double same_after = 0.2;     // relative error of a line extended with that power
enum { READINGS_INSIDE = 8 };             // number of readings used inside the run, near its end

struct bend { // bend of the stretch that starts at point `before`
	size_t before;
	int64_t t_ns;
	double j, within_s;
	struct curve_end end;
};

static double length_s(const struct curve *curve, size_t point)
{
	return seconds_between(curve->t_ns[point], curve->t_ns[point + 1]);
}

// Mean power of the stretch that starts at a point.
static double power_w(const struct curve *curve, size_t point)
{
	return (curve->j[point + 1] - curve->j[point]) / length_s(curve, point);
}

// Finds the stretch that contains an instant, ends excluded.
static bool find_interval(const struct curve *curve, struct slice points, int64_t t_ns, size_t *ret_before)
{
	size_t after = points.begin + slice_lower_bound(curve->t_ns + points.begin, points.end - points.begin, t_ns);
	if (after == points.begin || after == points.end || curve->t_ns[after] == t_ns)
		return false;
	*ret_before = after - 1;
	return true;
}

static void insert(struct curve *curve, struct curve_segment *segment, const struct bend *bend)
{
	size_t at = bend->before + 1, n = curve->n - at;
	memmove(&curve->t_ns[at + 1], &curve->t_ns[at], n * sizeof(curve->t_ns[0]));
	memmove(&curve->j[at + 1], &curve->j[at], n * sizeof(curve->j[0]));
	memmove(&curve->within_s[at + 1], &curve->within_s[at], n * sizeof(curve->within_s[0]));
	curve->t_ns[at] = bend->t_ns;
	curve->j[at] = bend->j;
	curve->within_s[at] = bend->within_s;
	curve->n++;
	segment->points.end++;
}

static struct power_range powers_beside(const struct curve *curve, struct slice points, size_t interval)
{
	double w = power_w(curve, interval);
	struct power_range range = {w, w};
	if (interval > points.begin)
		power_range_add(&range, power_w(curve, interval - 1));
	if (interval + 2 < points.end)
		power_range_add(&range, power_w(curve, interval + 1));
	return range;
}

// Extends the line from one point of the stretch with this power, up to the energy of its other point.
static struct bend bend_from(const struct curve *curve, struct slice points, size_t before, int64_t t_ns,
	bool from_left, double w)
{
	size_t from = from_left ? before : before + 1;
	int64_t begin_ns = curve->t_ns[before], end_ns = curve->t_ns[before + 1];
	double since_s = seconds_between(begin_ns, t_ns), mean_w = power_w(curve, before);
	double straight_j = curve->j[before] + mean_w * since_s;
	double j = curve->j[from] + w * seconds_between(curve->t_ns[from], t_ns);
	j = fmax(curve->j[before], fmin(j, curve->j[before + 1]));
	struct power_swing swing = power_swing_within(curve, begin_ns, end_ns, mean_w,
		powers_beside(curve, points, before));
	return (struct bend){.before = before,
		.t_ns = t_ns,
		.j = j,
		.within_s = curve->within_s[from],
		.end = {.uncertainty_j = fabs(j - straight_j),
			.bent_j = power_swing_j(swing, since_s, length_s(curve, before))}};
}

// Both ends in one stretch: the energy above the adjacent power belongs to the program.
static void bend_both(struct curve *curve, struct curve_segment *segment, size_t interval)
{
	double beside_w = INFINITY;
	if (interval > segment->points.begin)
		beside_w = power_w(curve, interval - 1);
	if (interval + 2 < segment->points.end)
		beside_w = fmin(beside_w, power_w(curve, interval + 1));
	if (!(beside_w < power_w(curve, interval)))
		return;
	struct bend start = bend_from(curve, segment->points, interval, segment->start_ns, true, beside_w);
	struct bend end = bend_from(curve, segment->points, interval, segment->end_ns, false, beside_w);
	segment->start = start.end;
	segment->end = end.end;
	insert(curve, segment, &end);
	insert(curve, segment, &start);
}

static double highest_w(const struct curve *curve, struct slice points)
{
	double w = 0;
	for (size_t i = points.begin; i + 1 < points.end; i++)
		w = fmax(w, power_w(curve, i));
	return w;
}

/* ---- power readings near an end ---- */

struct end_readings {
	bool known;
	double outside_w;          // reading just before the start, or after the end
	struct power_range inside; // readings near the end
};

struct ends { // ends of the run in one segment
	struct curve_builder *b;
	struct curve_segment *segment;
	struct slice samples;
	bool begins, ends; // whether the start and the end lie between two updates
	size_t first, last;
	int64_t from_ns, to_ns; // from the update after the start to the one before the end
};

static double last_reading_w(const struct ends *ends, size_t begin, size_t end)
{
	for (size_t i = end; i-- > begin;) {
		int64_t mw = values_at(ends->b->power_mw, i);
		if (value_ok(mw))
			return (double)mw / 1e3;
	}
	return (double)NAN;
}

static size_t row_at(const struct ends *ends, int64_t t_ns)
{
	return slice_lower_bound(ends->b->device->t_ns, ends->b->device->n, t_ns);
}

// w: power of the stretch that contains the end; inside_w: of the adjacent stretch in the run.
static struct end_readings read_end(const struct ends *ends, bool is_end, double w, double inside_w)
{
	struct end_readings readings = {.inside = {INFINITY, 0}};
	size_t begin = row_at(ends, ends->from_ns), end = row_at(ends, ends->to_ns + 1), n = 0;
	for (size_t i = 0; begin + i < end && n < READINGS_INSIDE; i++) {
		int64_t mw = values_at(ends->b->power_mw, is_end ? end - 1 - i : begin + i);
		if (!value_ok(mw))
			continue;
		power_range_add(&readings.inside, (double)mw / 1e3);
		n++;
	}
	if (is_end)
		readings.outside_w = last_reading_w(ends, row_at(ends, ends->segment->end_ns + 1), ends->samples.end);
	else
		readings.outside_w = last_reading_w(ends, ends->samples.begin,
			row_at(ends, ends->segment->start_ns + 1));
	// A reading equal to the mean of the stretch adds nothing to the counter's information.
	bool is_mean = fabs(readings.outside_w - w) <= fmin(same_mean * w, same_mean_jump * (inside_w - w));
	readings.known = n > 0 && !isnan(readings.outside_w) && !is_mean;
	return readings;
}

/* ---- one end ---- */

// `beside`: adjacent stretch on the program's side. known: that stretch is completely in the run.
static struct curve_end bend_one(const struct ends *ends, bool is_end, size_t interval, size_t beside, bool known)
{
	struct curve *curve = ends->b->curve;
	struct curve_segment *segment = ends->segment;
	int64_t t_ns = is_end ? segment->end_ns : segment->start_ns;
	int64_t outside_ns = curve->t_ns[is_end ? interval + 1 : interval];
	double w = power_w(curve, interval), inside_w = known ? power_w(curve, beside) : w;
	bool near = length_s(curve, interval) <= neighbours_max * curve->updates.longest_s;
	double outside_s = fabs(seconds_between(outside_ns, t_ns)), inside_s = length_s(curve, interval) - outside_s;
	if (known && !near) // a reading long after the run's last one gives little information about the time in between
		return (struct curve_end){
			.uncertainty_j = fmin(w * outside_s, highest_w(curve, segment->points) * inside_s)};
	if (!known)
		return (struct curve_end){.uncertainty_j = w * outside_s};
	struct end_readings readings = read_end(ends, is_end, w, inside_w);
	bool falls = readings.outside_w < (1 - same_power) * readings.inside.min_w;
	if (inside_w <= w || (readings.known && !falls))
		return (struct curve_end){0};
	struct bend bend = bend_from(curve, segment->points, interval, t_ns, is_end, inside_w);
	if (readings.known) {
		power_range_add(&readings.inside, (1 - same_after) * inside_w);
		power_range_add(&readings.inside, (1 + same_after) * inside_w);
		double off_w = fmax(readings.inside.max_w - inside_w, inside_w - readings.inside.min_w);
		bend.end.bent_j = fmin(bend.end.bent_j, off_w * inside_s);
	}
	insert(curve, segment, &bend);
	return bend.end;
}

void curve_bend_ends(struct curve_builder *b, struct curve_segment *segment, struct slice samples)
{
	struct curve *curve = b->curve;
	size_t begin = segment->points.begin, end = segment->points.end;
	struct ends ends = {.b = b,
		.segment = segment,
		.samples = samples,
		.from_ns = segment->start_ns,
		.to_ns = segment->end_ns};
	ends.begins = find_interval(curve, segment->points, segment->start_ns, &ends.first);
	ends.ends = find_interval(curve, segment->points, segment->end_ns, &ends.last);
	size_t first = ends.first, last = ends.last;
	if (ends.begins && ends.ends && first == last) {
		bend_both(curve, segment, first);
		return;
	}
	if (ends.begins)
		ends.from_ns = curve->t_ns[first + 1];
	if (ends.ends)
		ends.to_ns = curve->t_ns[last];
	if (ends.ends)
		segment->end = bend_one(&ends, true, last, last - 1,
			last > begin && (!ends.begins || last - 1 > first));
	if (ends.begins)
		segment->start = bend_one(&ends, false, first, first + 1,
			first + 2 < end && (!ends.ends || first + 1 < last));
}
