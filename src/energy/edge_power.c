#include "energy/curve.h"

#include "base/util.h"

// Mean power of one grid step; NaN: most of it has no points.
static double step_w(const struct edge_power *near_power, int64_t number)
{
	const struct curve *curve = near_power->curve;
	struct slice points = near_power->segment->points;
	int64_t from_ns = near_power->origin_ns + number * near_power->step_ns, to_ns = from_ns + near_power->step_ns;
	int64_t first_ns = curve->t_ns[points.begin], last_ns = curve->t_ns[points.end - 1];
	from_ns = from_ns > first_ns ? from_ns : first_ns;
	to_ns = to_ns < last_ns ? to_ns : last_ns;
	if (to_ns - from_ns < near_power->step_ns / 4 || to_ns <= from_ns)
		return (double)NAN;
	return (curve_line_at(curve, near_power->segment, to_ns) - curve_line_at(curve, near_power->segment, from_ns)) /
		((double)(to_ns - from_ns) / 1e9);
}

static void move_to(struct edge_power *near_power, int64_t first)
{
	int64_t kept = 0, moved = first - near_power->first;
	if (near_power->any && moved >= 0 && moved < (int64_t)ARRAY_SIZE(near_power->w)) {
		kept = (int64_t)ARRAY_SIZE(near_power->w) - moved;
		memmove(near_power->w, near_power->w + moved, (size_t)kept * sizeof(near_power->w[0]));
	}
	for (int64_t i = kept; i < (int64_t)ARRAY_SIZE(near_power->w); i++)
		near_power->w[i] = step_w(near_power, first + i);
	near_power->first = first;
	near_power->any = true;
}

void edge_power_init(struct edge_power *near_power, const struct curve *curve, const struct curve_segment *segment,
	int64_t t_ns)
{
	int64_t step_ns = llround(curve->average_s * 1e9 / EDGE_POWER_POINTS);
	*near_power = (struct edge_power){.curve = curve,
		.segment = segment,
		.origin_ns = t_ns,
		.step_ns = curve->average_s > 0 && step_ns < 1 ? 1 : step_ns};
}

void edge_power_at(struct edge_power *near_power, int64_t t_ns)
{
	if (near_power->step_ns <= 0)
		return;
	int64_t since_ns = t_ns - near_power->origin_ns, first = since_ns / near_power->step_ns - EDGE_POWER_POINTS;
	if (near_power->any && near_power->first == first)
		return;
	move_to(near_power, first);
	near_power->min_w = INFINITY;
	near_power->max_w = 0;
	for (size_t i = 0; i < ARRAY_SIZE(near_power->w); i++) {
		near_power->min_w = near_power->w[i] < near_power->min_w ? near_power->w[i] : near_power->min_w;
		near_power->max_w = near_power->w[i] > near_power->max_w ? near_power->w[i] : near_power->max_w;
	}
}
