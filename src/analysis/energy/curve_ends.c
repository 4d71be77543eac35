/* Power changes just where a program starts and ends, and that is where its run begins and ends: in the middle between two
 * updates of the counter. A straight line there would give a part of the program's power to the idle machine, the same
 * way round in every run. So the stretch between the two updates is bent at that instant: on the program's side it goes on
 * with the power of the next stretch of the run, and what is left is the other side's.
 *
 *   end:    E(t) = E(a) + P (t - a), P of the stretch before a     start: E(t) = E(b) - P (b - t), P of the stretch after b
 *
 * That is done where the program's side has the higher power. If power fell at another moment instead, the truth lies
 * between the bend and the straight line (as long as it fell only once), so their distance is the doubt. A run that
 * begins and ends in one stretch is bent at both ends with the power on either side of it.
 *
 * Where the readings were too far apart for that, the run is too short, or power rose instead, the line stays straight, and
 * the doubt is all of the energy between the instant and the update outside of the run; of readings too far apart no more
 * than what the part inside uses at the highest power that was seen. */
#include "analysis/energy/curve_build.h"

#include "base/util.h"

static const double neighbours_max = 2; // periods between two updates that are taken to be neighbours
static const double same_power = 0.05;  // a smaller difference is noise

struct bend { // of the stretch that begins with point `before`
	size_t before;
	int64_t t_ns;
	double j, within_s;
	struct curve_end end;
};

static double length_s(const struct curve *curve, size_t point)
{
	return seconds_between(curve->t_ns[point], curve->t_ns[point + 1]);
}

// Power of the stretch that begins with a point.
static double power_w(const struct curve *curve, size_t point)
{
	return (curve->j[point + 1] - curve->j[point]) / length_s(curve, point);
}

// The stretch that an instant lies in, its ends excluded.
static bool find_stretch(const struct curve *curve, struct slice points, int64_t t_ns, size_t *ret_before)
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

// Goes on from one of the stretch's points with this power, but not beyond the energy of its other point.
static struct bend bend_from(const struct curve *curve, size_t before, int64_t t_ns, bool from_left, double w)
{
	size_t from = from_left ? before : before + 1;
	double since_s = seconds_between(curve->t_ns[before], t_ns), left_s = length_s(curve, before) - since_s;
	double straight_j = curve->j[before] + power_w(curve, before) * since_s;
	double j = curve->j[from] + w * seconds_between(curve->t_ns[from], t_ns);
	j = fmax(curve->j[before], fmin(j, curve->j[before + 1]));
	return (struct bend){.before = before,
		.t_ns = t_ns,
		.j = j,
		.within_s = curve->within_s[from],
		.end = {.doubt_j = fabs(j - straight_j), .lever_s = since_s * left_s / (since_s + left_s)}};
}

// Both ends in one stretch: what it has above the power beside it is the program's.
static void bend_both(struct curve *curve, struct curve_segment *segment, size_t stretch)
{
	double beside_w = INFINITY;
	if (stretch > segment->points.begin)
		beside_w = power_w(curve, stretch - 1);
	if (stretch + 2 < segment->points.end)
		beside_w = fmin(beside_w, power_w(curve, stretch + 1));
	if (!(beside_w < power_w(curve, stretch)))
		return;
	struct bend start = bend_from(curve, stretch, segment->start_ns, true, beside_w);
	struct bend end = bend_from(curve, stretch, segment->end_ns, false, beside_w);
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

// `beside`: the stretch next to it on the program's side. known: it lies in the run as a whole.
static struct curve_end bend_one(struct curve *curve, struct curve_segment *segment, size_t stretch, size_t beside,
	bool known)
{
	bool is_end = beside < stretch;
	int64_t t_ns = is_end ? segment->end_ns : segment->start_ns;
	int64_t outside_ns = curve->t_ns[is_end ? stretch + 1 : stretch];
	double w = power_w(curve, stretch);
	bool near = length_s(curve, stretch) <= neighbours_max * curve->updates.longest_s;
	bool rises = known && power_w(curve, beside) < (1 - same_power) * w;
	double outside_s = fabs(seconds_between(outside_ns, t_ns)), inside_s = length_s(curve, stretch) - outside_s;
	if (known && !near) // a reading long after the last one of the run says little of the moment between them
		return (struct curve_end){.doubt_j = fmin(w * outside_s, highest_w(curve, segment->points) * inside_s)};
	if (!known || rises)
		return (struct curve_end){.doubt_j = w * outside_s};
	if (power_w(curve, beside) <= w)
		return (struct curve_end){0};
	struct bend bend = bend_from(curve, stretch, t_ns, is_end, power_w(curve, beside));
	bend.end.lever_s = sqrt(inside_s * length_s(curve, beside));
	insert(curve, segment, &bend);
	return bend.end;
}

void curve_bend_ends(struct curve *curve, struct curve_segment *segment)
{
	size_t first = 0, last = 0, begin = segment->points.begin, end = segment->points.end;
	bool begins = find_stretch(curve, segment->points, segment->start_ns, &first);
	bool ends = find_stretch(curve, segment->points, segment->end_ns, &last);
	if (begins && ends && first == last) {
		bend_both(curve, segment, first);
		return;
	}
	if (ends)
		segment->end = bend_one(curve, segment, last, last - 1, last > begin && (!begins || last - 1 > first));
	if (begins)
		segment->start = bend_one(curve, segment, first, first + 1,
			first + 2 < end && (!ends || first + 1 < last));
}
