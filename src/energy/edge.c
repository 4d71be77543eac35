/* The energy at an instant t between two points a and b of a curve has two sources of error.
 *
 *   placing   The points lie anywhere within their brackets, so the line is shifted by up to that time. With power P (the
 *             largest of the stretch and of those on both sides) and half width h the variance is (P h)² / 3.
 *             The brackets of neighbours come from the same readings and are assumed to have the same error.
 *   bending   Power was not constant between a and b. With a step of s somewhere between them the straight line is off
 *             by at most s (t - a) (b - t) / (b - a); the variance is a third of the square. s is the largest of: the
 *             difference to the power on either side, the typical change between stretches in this run, and a fifth of
 *             the power. Between two adjacent updates power may also have varied in step with the counter, which no
 *             stretch shows: power_swing.c. The larger of the two distances counts.
 *
 * Beyond the last point the line continues with the last power and has no point at its other end. The variance is the smaller
 * of s² (t - a) (b - a), with the length of the last stretch (the mean of a short time changes more than that of a long one),
 * and P² (t - a)². It is at least that of a swing: (t - a)² times a third of its square.
 *
 * A device that averages its power reading over a time A is late: energy from before the first instant is included, and
 * energy from before the second is missing. After a step of power, a continuously updated mean lacks A / 2 of the step. A
 * mean updated every U lacks (A + U) / 2. A mean that did not change for a time h after the step lacks h, if h is A or more.
 * An idle card may show one value for A and until its next update (an idle A5000 did for a second): A + U at most. That time,
 * multiplied by the difference of all power around both instants, is half of a 95 % interval. If fewer than four of the
 * device's readings lie between the instants, the change is assumed to be at least three quarters of the power.
 *
 * If both instants lie between the same two points, misplaced points shift both, and only a change of power matters. The time
 * and size of such a change are unknown: all energy of the stretch above the surrounding power may lie inside or outside. A
 * repeated code block shorter than the stretch may always use more or less than the mean. Its uncertainty is half of its
 * energy, and it adds linearly over calls. */
#include "energy/curve.h"

#include "base/util.h"

static const double step_min = 0.2;        // fraction of the power
static const double unresolved_part = 0.5; // fraction of the energy of a time far shorter than an update
static const double updates_seen_min = 4;  // with fewer device readings, changes of power are not visible
static const double unseen_change = 0.75;  // assumed change in that case, as a fraction of the power

static double square(double x)
{
	return x * x;
}

// Mean power near a point, inside or outside the target's life. NaN: most of that time has no points.
static double mean_w(const struct curve *curve, const struct curve_segment *segment, int64_t from_ns, int64_t to_ns,
	size_t near)
{
	int64_t first_ns = curve->t_ns[segment->points.begin], last_ns = curve->t_ns[segment->points.end - 1];
	int64_t length_ns = to_ns - from_ns;
	from_ns = from_ns > first_ns ? from_ns : first_ns;
	to_ns = to_ns < last_ns ? to_ns : last_ns;
	if (to_ns - from_ns < length_ns / 4 || to_ns <= from_ns)
		return (double)NAN;
	return (curve_line_near(curve, segment, to_ns, near) - curve_line_near(curve, segment, from_ns, near)) /
		seconds_between(from_ns, to_ns);
}

static struct edge_interval beyond(const struct curve *curve, const struct curve_segment *segment, bool early)
{
	size_t nearest = early ? segment->points.begin : segment->points.end - 1;
	int64_t point_ns = curve->t_ns[nearest], other_ns = point_ns;
	if (segment->points.end - segment->points.begin > 1)
		other_ns = curve->t_ns[early ? nearest + 1 : nearest - 1];
	double w = early ? segment->first_w : segment->last_w;
	int64_t far_ns = 2 * other_ns - point_ns; // equal time beyond the stretch at the end
	double neighbour_w = early ? mean_w(curve, segment, other_ns, far_ns, nearest)
				   : mean_w(curve, segment, far_ns, other_ns, nearest);
	return (struct edge_interval){.from_ns = early ? point_ns : other_ns,
		.to_ns = early ? other_ns : point_ns,
		.before = nearest,
		.length_s = fabs(seconds_between(point_ns, other_ns)),
		.w = w,
		.before_w = neighbour_w,
		.after_w = neighbour_w};
}

// `after`: the first point not before the instant.
static struct edge_interval interval_before(const struct curve *curve, const struct curve_segment *segment,
	size_t after)
{
	struct slice points = segment->points;
	if (after == points.begin || after == points.end)
		return beyond(curve, segment, after == points.begin);
	int64_t a_ns = curve->t_ns[after - 1], b_ns = curve->t_ns[after], length_ns = b_ns - a_ns;
	return (struct edge_interval){.from_ns = a_ns,
		.to_ns = b_ns,
		.inside = true,
		.before = after - 1,
		.length_s = seconds_between(a_ns, b_ns),
		.w = mean_w(curve, segment, a_ns, b_ns, after),
		.before_w = mean_w(curve, segment, a_ns - length_ns, a_ns, after),
		.after_w = mean_w(curve, segment, b_ns, b_ns + length_ns, after)};
}

// Returns the larger of two values, ignoring unknown ones.
static double larger(double a, double b)
{
	return a > b || isnan(b) ? a : b;
}

static void set_range(const struct curve *curve, struct edge_interval *s)
{
	double step_w = larger(fabs(s->w - s->before_w), fabs(s->after_w - s->w));
	step_w = larger(step_w, fabs(s->after_w - s->before_w));
	s->step_w = larger(step_w, larger(curve->step_w, step_min * s->w));
	s->max_w = larger(s->w, larger(s->before_w, s->after_w));
	struct power_range beside = {s->w, s->w};
	power_range_add(&beside, s->before_w);
	power_range_add(&beside, s->after_w);
	s->swing = power_swing_within(curve, s->from_ns, s->to_ns, s->w, beside);
}

// Sets the position of the instant within its stretch.
static void move_to(struct edge_walk *walk, int64_t t_ns)
{
	const struct edge_interval *s = &walk->interval;
	const double *within_s = walk->curve->within_s + s->before;
	walk->since_s = fabs(seconds_between(walk->curve->t_ns[s->before], t_ns));
	walk->within_s = within_s[0];
	if (s->inside)
		walk->within_s += walk->since_s / s->length_s * (within_s[1] - within_s[0]);
}

static double averaging_j2(const struct curve *curve, const struct edge_point *from, const struct edge_point *to)
{
	if (!(curve->average_s > 0))
		return 0;
	double change_w = fmax(from->max_w, to->max_w) - fmin(from->min_w, to->min_w);
	change_w = fmax(change_w, 0);
	double time_s = seconds_between(from->t_ns, to->t_ns);
	if (time_s < updates_seen_min * curve->held_s)
		change_w = fmax(change_w, unseen_change * (to->line_j - from->line_j) / time_s);
	double late_s = curve->average_s + curve->held_s;
	return square(change_w * late_s / 2);
}

// Variance at an instant that is not an end of the run.
static double variance_j2(const struct edge_walk *walk)
{
	const struct edge_interval *s = &walk->interval;
	double since_s = walk->since_s, placing_j = s->max_w * walk->within_s;
	if (s->inside) {
		double bending_j = s->step_w * since_s * (s->length_s - since_s) / s->length_s;
		bending_j = larger(bending_j, power_swing_j(s->swing, since_s, s->length_s));
		return (square(placing_j) + square(bending_j)) / 3;
	}
	double swing_j = fmax(s->swing.above_w, s->swing.below_w) * since_s;
	double bending_j = s->step_w * sqrt(since_s * larger(since_s, s->length_s));
	double all_j = larger(s->w, s->before_w) * since_s;
	return square(placing_j) / 3 + fmax(square(bending_j < all_j ? bending_j : all_j), square(swing_j) / 3);
}

static struct edge_uncertainty uncertainty_at(const struct edge_walk *walk, const struct curve_segment *segment,
	int64_t t_ns)
{
	struct edge_uncertainty uncertainty = {.variance_j2 = variance_j2(walk)};
	if (t_ns != segment->start_ns && t_ns != segment->end_ns)
		return uncertainty;
	const struct curve_end *end = t_ns == segment->start_ns ? &segment->start : &segment->end;
	uncertainty.variance_j2 += square(end->bent_j) / 3;
	uncertainty.linear_j = end->uncertainty_j;
	return uncertainty;
}

// Both instants are between the same two points, time_s apart; the first is known to within_s.
static struct edge_uncertainty inside_one(const struct edge_interval *s, double time_s, double within_s)
{
	double change_w = larger(larger(fabs(s->w - s->before_w), fabs(s->w - s->after_w)), 0);
	double beside_w = s->after_w < s->before_w || isnan(s->before_w) ? s->after_w : s->before_w;
	double above_w = isnan(beside_w) ? s->w : fabs(s->w - beside_w);
	double moved_j = above_w * (s->length_s - time_s), max_j = 2 * s->max_w * time_s;
	double shifted_j = change_w * (within_s < time_s ? within_s : time_s);
	return (struct edge_uncertainty){
		.variance_j2 = (square(moved_j < max_j ? moved_j : max_j) + square(shifted_j)) / 3,
		.linear_j = unresolved_part * s->w * time_s * (1 - time_s / s->length_s),
	};
}

void edge_walk_to(struct edge_walk *walk, const struct curve_walk *at, struct edge_point *ret_point)
{
	const struct curve *curve = walk->curve;
	const struct curve_segment *segment = &curve->segments[at->segment];
	if (segment->points.end - segment->points.begin < 2) {
		*ret_point = (struct edge_point){.segment = at->segment, .t_ns = at->t_ns};
		return;
	}
	bool other_segment = !walk->any || walk->segment != at->segment;
	if (other_segment || walk->after != at->after) {
		walk->interval = interval_before(curve, segment, at->after);
		set_range(curve, &walk->interval);
	}
	if (other_segment)
		edge_power_init(&walk->near_power, curve, segment, at->t_ns);
	walk->any = true;
	walk->segment = at->segment;
	walk->after = at->after;
	move_to(walk, at->t_ns);
	edge_power_at(&walk->near_power, at->t_ns);
	*ret_point = (struct edge_point){.segment = at->segment,
		.inside = walk->interval.inside,
		.before = walk->interval.before,
		.t_ns = at->t_ns,
		.line_j = at->line_j,
		.within_s = walk->within_s,
		.uncertainty = uncertainty_at(walk, segment, at->t_ns),
		.min_w = walk->near_power.min_w,
		.max_w = walk->near_power.max_w};
}

struct edge_uncertainty edge_walked(const struct edge_walk *walk, const struct edge_point *from,
	const struct edge_point *to)
{
	const struct curve *curve = walk->curve;
	if (to->t_ns <= from->t_ns)
		return (struct edge_uncertainty){0};
	if (from->inside && to->inside && from->before == to->before)
		return inside_one(&walk->interval, seconds_between(from->t_ns, to->t_ns), from->within_s);
	return (struct edge_uncertainty){
		.variance_j2 = from->uncertainty.variance_j2 + to->uncertainty.variance_j2 +
			averaging_j2(curve, from, to),
		.linear_j = from->uncertainty.linear_j + to->uncertainty.linear_j,
	};
}

struct edge_uncertainty edge_between(const struct curve *curve, size_t index, int64_t from_ns, int64_t to_ns)
{
	struct curve_walk at = {.curve = curve};
	struct edge_walk walk = {.curve = curve};
	struct edge_point from, to;
	curve_walk_to(&at, index, from_ns);
	edge_walk_to(&walk, &at, &from);
	curve_walk_to(&at, index, to_ns);
	edge_walk_to(&walk, &at, &to);
	return edge_walked(&walk, &from, &to);
}
