/* The energy at an instant t between two points a and b of a curve is off for two reasons.
 *
 *   placing   the points stand somewhere within their brackets, so the line is shifted by up to that time: with power P
 *             there (the largest of the stretch and those on both sides) and half width h the variance is (P h)² / 3.
 *             The brackets of neighbours are seen by the same readings and are taken to be off alike.
 *   bending   power was not the same all the time between a and b. With a step of s somewhere between them the straight
 *             line is off by at most s (t - a) (b - t) / (b - a); the variance is a third of the square. s is the
 *             difference to the power on either side, or what power changes by from stretch to stretch in this run, or
 *             a fifth of the power, whichever is largest.
 *
 * Beyond the last point the line goes on with the last power, and nothing holds it at the other end: variance
 * s² (t - a) (b - a), with the length of the last stretch (the mean of a short time changes more than that of a long one),
 * or P² (t - a)² if that is less.
 *
 * A device that averages its power reading over a second is half a second late: energy from before the first instant
 * comes in, energy from before the second is missing. Three quarters of a second times the difference of all power around
 * both instants is half of a 95 % interval. A device that shows one reading for long is later by half of that time; and
 * if fewer than four of its readings fall between the instants, the change is taken to be three quarters of the power at least.
 *
 * Where both instants lie between the same two points, misplaced points shift both, and only a change of power matters.
 * But nothing tells what happened there and when: all of what the stretch has above the power around it may lie inside or
 * outside. A code block that is shorter than that, again and again, may always use more or less than the mean: half of its
 * energy, which adds up over its calls. */
#include "analysis/edge.h"

#include "base/util.h"

static const double step_min = 0.2;        // of the power
static const double late_part = 0.75;      // of the time that a device averages over: its reading is late by half of it
static const double unresolved_part = 0.5; // of the energy of a time far shorter than an update
static const double updates_seen_min = 4;  // with fewer readings of the device's own, how power changes is not seen
static const double unseen_change = 0.75;  // of the power: what it is taken to change by then

struct stretch {                     // between two points, and its surroundings
	bool inside;                 // there is a point on both sides; else the line goes on beyond the last one
	size_t before;               // index of the point before; of the nearest one if !inside
	double length_s;             // between the points; else of the last stretch
	double since_s;              // since the point before, or distance to the nearest one
	double w, before_w, after_w; // NaN: nothing is known there
	double within_s;             // of the points, at this instant
};

static double square(double x)
{
	return x * x;
}

static double seconds(int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns) / 1e9;
}

// Mean power of a time, whether or not the target lived then. NaN: for most of it there are no points.
static double mean_w(const struct curve *curve, const struct curve_segment *segment, int64_t from_ns, int64_t to_ns)
{
	int64_t first_ns = curve->t_ns[segment->points.begin], last_ns = curve->t_ns[segment->points.end - 1];
	int64_t length_ns = to_ns - from_ns;
	from_ns = from_ns > first_ns ? from_ns : first_ns;
	to_ns = to_ns < last_ns ? to_ns : last_ns;
	if (to_ns - from_ns < length_ns / 4 || to_ns <= from_ns)
		return (double)NAN;
	return (curve_line_at(curve, segment, to_ns) - curve_line_at(curve, segment, from_ns)) /
		seconds(from_ns, to_ns);
}

static struct stretch beyond(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns, bool early)
{
	size_t nearest = early ? segment->points.begin : segment->points.end - 1;
	int64_t point_ns = curve->t_ns[nearest], other_ns = point_ns;
	if (segment->points.end - segment->points.begin > 1)
		other_ns = curve->t_ns[early ? nearest + 1 : nearest - 1];
	double w = early ? segment->first_w : segment->last_w;
	int64_t far_ns = 2 * other_ns - point_ns; // as long a time beyond the stretch at the end
	double neighbour_w = early ? mean_w(curve, segment, other_ns, far_ns)
				   : mean_w(curve, segment, far_ns, other_ns);
	return (struct stretch){.before = nearest,
		.length_s = fabs(seconds(point_ns, other_ns)),
		.since_s = fabs(seconds(point_ns, t_ns)),
		.w = w,
		.before_w = neighbour_w,
		.after_w = neighbour_w,
		.within_s = curve->within_s[nearest]};
}

static struct stretch stretch_at(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns)
{
	struct slice points = segment->points;
	size_t after = points.begin + slice_lower_bound(curve->t_ns + points.begin, points.end - points.begin, t_ns);
	if (after == points.begin || after == points.end)
		return beyond(curve, segment, t_ns, after == points.begin);
	int64_t a_ns = curve->t_ns[after - 1], b_ns = curve->t_ns[after], length_ns = b_ns - a_ns;
	double w = mean_w(curve, segment, a_ns, b_ns), part = seconds(a_ns, t_ns) / seconds(a_ns, b_ns);
	return (struct stretch){.inside = true,
		.before = after - 1,
		.length_s = seconds(a_ns, b_ns),
		.since_s = seconds(a_ns, t_ns),
		.w = w,
		.before_w = mean_w(curve, segment, a_ns - length_ns, a_ns),
		.after_w = mean_w(curve, segment, b_ns, b_ns + length_ns),
		.within_s = (1 - part) * curve->within_s[after - 1] + part * curve->within_s[after]};
}

static double step_w(const struct curve *curve, const struct stretch *s)
{
	double step_w = fmax(fabs(s->w - s->before_w), fabs(s->after_w - s->w));
	step_w = fmax(step_w, fabs(s->after_w - s->before_w));
	return fmax(step_w, fmax(curve->step_w, step_min * s->w));
}

static double placing_j2(const struct stretch *s)
{
	return square(fmax(s->w, fmax(s->before_w, s->after_w)) * s->within_s) / 3;
}

struct range {
	double least_w, most_w;
};

// What power was around an instant, within the time that the device averages over before it and after it.
static void look_around(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns,
	struct range *range)
{
	enum { LOOKS = 8 };
	int64_t step_ns = llround(curve->average_s * 1e9 / LOOKS);
	for (int i = -LOOKS; i < LOOKS; i++) {
		double w = mean_w(curve, segment, t_ns + i * step_ns, t_ns + (i + 1) * step_ns);
		range->least_w = w < range->least_w ? w : range->least_w;
		range->most_w = w > range->most_w ? w : range->most_w;
	}
}

static double averaging_j2(const struct curve *curve, const struct curve_segment *segment, int64_t from_ns,
	int64_t to_ns)
{
	struct range range = {.least_w = INFINITY};
	if (!(curve->average_s > 0))
		return 0;
	look_around(curve, segment, from_ns, &range);
	look_around(curve, segment, to_ns, &range);
	double change_w = range.most_w > range.least_w ? range.most_w - range.least_w : 0;
	if (seconds(from_ns, to_ns) < updates_seen_min * curve->held_s)
		change_w = fmax(change_w, unseen_change * mean_w(curve, segment, from_ns, to_ns));
	double late_s = late_part * curve->average_s + curve->held_s / 2;
	return square(change_w * late_s / 2);
}

// Set where an instant is an end of the run; the line may be bent there, and the stretch was longer before it was.
static const struct curve_end *end_at(const struct curve_segment *segment, int64_t t_ns)
{
	static const struct curve_end none = {0};
	if (t_ns == segment->start_ns)
		return &segment->start;
	return t_ns == segment->end_ns ? &segment->end : &none;
}

static double variance_at_j2(const struct curve *curve, const struct curve_segment *segment, int64_t t_ns)
{
	struct stretch s = stretch_at(curve, segment, t_ns);
	double step_j = step_w(curve, &s) * sqrt(s.since_s * fmax(s.since_s, s.length_s));
	double bending_j = fmin(step_j, fmax(s.w, s.before_w) * s.since_s);
	if (s.inside)
		bending_j = step_w(curve, &s) * s.since_s * (s.length_s - s.since_s) / s.length_s / sqrt(3);
	double bent_j = fmax(curve->step_w, step_min * s.w) * end_at(segment, t_ns)->lever_s;
	return placing_j2(&s) + square(bending_j) + square(bent_j) / 12;
}

// Both instants between the same two points.
static struct edge_doubt inside_one(const struct stretch *from, const struct stretch *to)
{
	double time_s = to->since_s - from->since_s;
	double change_w = fmax(fabs(from->w - from->before_w), fabs(from->w - from->after_w));
	double beside_w = fmin(from->before_w, from->after_w);
	double above_w = isnan(beside_w) ? from->w : fabs(from->w - beside_w);
	double moved_j = above_w * (from->length_s - time_s);
	double most_j = 2 * fmax(from->w, fmax(from->before_w, from->after_w)) * time_s;
	return (struct edge_doubt){
		.variance_j2 = (square(fmin(moved_j, most_j)) +
				       square(fmax(change_w, 0) * fmin(from->within_s, time_s))) /
			3,
		.linear_j = unresolved_part * from->w * time_s * (1 - time_s / from->length_s),
	};
}

struct edge_doubt edge_between(const struct curve *curve, size_t index, int64_t from_ns, int64_t to_ns)
{
	const struct curve_segment *segment = &curve->segments[index];
	from_ns = from_ns > segment->first_ns ? from_ns : segment->first_ns;
	to_ns = to_ns < segment->last_ns ? to_ns : segment->last_ns;
	if (segment->points.end - segment->points.begin < 2 || to_ns <= from_ns)
		return (struct edge_doubt){0};
	struct stretch from = stretch_at(curve, segment, from_ns), to = stretch_at(curve, segment, to_ns);
	if (from.inside && to.inside && from.before == to.before)
		return inside_one(&from, &to);
	return (struct edge_doubt){
		.variance_j2 = variance_at_j2(curve, segment, from_ns) + variance_at_j2(curve, segment, to_ns) +
			averaging_j2(curve, segment, from_ns, to_ns),
		.linear_j = end_at(segment, from_ns)->doubt_j + end_at(segment, to_ns)->doubt_j,
	};
}
