#include "energy/curve.h"

#include "base/util.h"

// Mean power of one grid step; NaN: most of it has no points.
static double step_w(const struct edge_look *look, int64_t number)
{
	const struct curve *curve = look->curve;
	struct slice points = look->segment->points;
	int64_t from_ns = look->origin_ns + number * look->step_ns, to_ns = from_ns + look->step_ns;
	int64_t first_ns = curve->t_ns[points.begin], last_ns = curve->t_ns[points.end - 1];
	from_ns = from_ns > first_ns ? from_ns : first_ns;
	to_ns = to_ns < last_ns ? to_ns : last_ns;
	if (to_ns - from_ns < look->step_ns / 4 || to_ns <= from_ns)
		return (double)NAN;
	return (curve_line_at(curve, look->segment, to_ns) - curve_line_at(curve, look->segment, from_ns)) /
		((double)(to_ns - from_ns) / 1e9);
}

static void move_to(struct edge_look *look, int64_t first)
{
	int64_t kept = 0, moved = first - look->first;
	if (look->any && moved >= 0 && moved < (int64_t)ARRAY_SIZE(look->w)) {
		kept = (int64_t)ARRAY_SIZE(look->w) - moved;
		memmove(look->w, look->w + moved, (size_t)kept * sizeof(look->w[0]));
	}
	for (int64_t i = kept; i < (int64_t)ARRAY_SIZE(look->w); i++)
		look->w[i] = step_w(look, first + i);
	look->first = first;
	look->any = true;
}

void edge_look_init(struct edge_look *look, const struct curve *curve, const struct curve_segment *segment,
	int64_t t_ns)
{
	int64_t step_ns = llround(curve->average_s * 1e9 / EDGE_LOOKS);
	*look = (struct edge_look){.curve = curve,
		.segment = segment,
		.origin_ns = t_ns,
		.step_ns = curve->average_s > 0 && step_ns < 1 ? 1 : step_ns};
}

void edge_look_at(struct edge_look *look, int64_t t_ns)
{
	if (look->step_ns <= 0)
		return;
	int64_t since_ns = t_ns - look->origin_ns, first = since_ns / look->step_ns - EDGE_LOOKS;
	if (look->any && look->first == first)
		return;
	move_to(look, first);
	look->least_w = INFINITY;
	look->most_w = 0;
	for (size_t i = 0; i < ARRAY_SIZE(look->w); i++) {
		look->least_w = look->w[i] < look->least_w ? look->w[i] : look->least_w;
		look->most_w = look->w[i] > look->most_w ? look->w[i] : look->most_w;
	}
}
