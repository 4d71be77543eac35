// Converts power readings to points by the trapezoid rule.
#include "energy/internal.h"

#include "base/util.h"

struct power_reading {
	int64_t t_ns;
	double w;
};

/* Variance of the trapezoid rule around a reading, from the second difference there. If power jumps by d somewhere between
 * two readings h apart, the rule is off by up to d h / 2 in either direction: variance (d h)^2 / 12. Both readings then have
 * a second difference of d, and each contributes half. For smooth changes of power the rule is more exact than this. */
static double trapezoid_j2(const double t_s[3], const double w[3])
{
	double before_s = t_s[1] - t_s[0], after_s = t_s[2] - t_s[1], h_s = (before_s + after_s) / 2;
	double difference_w = ((w[2] - w[1]) / after_s - (w[1] - w[0]) / before_s) * h_s;
	return difference_w * difference_w * h_s * h_s / 24;
}

static void add_rounding(struct curve_builder *b, const struct power_reading last[3])
{
	double t_s[3], w[3];
	for (int i = 0; i < 3; i++) {
		t_s[i] = (double)(last[i].t_ns - last[0].t_ns) / 1e9;
		w[i] = last[i].w;
	}
	bool near = last[2].t_ns - last[1].t_ns <= b->hole_ns && last[1].t_ns - last[0].t_ns <= b->hole_ns;
	if (!near || !(t_s[1] > 0) || !(t_s[2] > t_s[1]))
		return;
	b->curve->rounding_j2 += trapezoid_j2(t_s, w);
}

// The first reading also covers the short time between the target's start and the reading.
static void power_begins(struct curve_builder *b, struct curve_segment *segment, struct power_reading reading)
{
	bool early = reading.t_ns - segment->start_ns <= b->hole_ns;
	curve_add_point(b->curve, reading.t_ns, 0, 0);
	segment->first_w = reading.w;
	segment->first_ns = early && segment->start_ns < reading.t_ns ? segment->start_ns : reading.t_ns;
	curve_add_hole(b->curve, segment->start_ns, segment->first_ns);
}

static void power_ends(struct curve_builder *b, struct curve_segment *segment, struct power_reading reading)
{
	bool late = segment->end_ns - reading.t_ns <= b->hole_ns;
	segment->last_w = reading.w;
	segment->last_ns = late && segment->end_ns > reading.t_ns ? segment->end_ns : reading.t_ns;
	curve_add_hole(b->curve, segment->last_ns, segment->end_ns);
}

static void power_goes_on(struct curve_builder *b, struct power_reading before, struct power_reading now,
	bool readings_missing)
{
	struct curve *curve = b->curve;
	int64_t dt_ns = now.t_ns - before.t_ns;
	bool hole = dt_ns > b->hole_ns;
	double mean_w = hole ? 0 : (before.w + now.w) / 2;
	if (hole) {
		curve_add_hole(curve, before.t_ns, now.t_ns);
		curve->long_holes += !readings_missing;
	}
	curve_add_point(curve, now.t_ns, curve->j[curve->n - 1] + mean_w * (double)dt_ns / 1e9, 0);
}

void curve_power_segment(struct curve_builder *b, size_t index, struct slice samples)
{
	struct curve_segment *segment = &b->curve->segments[index];
	struct power_reading last[3] = {0};
	size_t n = 0, begin = b->curve->n;
	bool missed = false;
	for (size_t i = samples.begin; i < samples.end; i++) {
		int64_t mw = values_at(b->power_mw, i);
		if (!value_ok(mw)) {
			missed |= curve_was_sampled(b->run, b->device->t_ns[i]);
			continue;
		}
		struct power_reading now = {b->device->t_ns[i], (double)mw / 1e3};
		if (n == 0)
			power_begins(b, segment, now);
		else
			power_goes_on(b, last[2], now, missed);
		missed = false;
		last[0] = last[1];
		last[1] = last[2];
		last[2] = now;
		if (++n >= 3)
			add_rounding(b, last);
	}
	segment->points = (struct slice){begin, b->curve->n};
	if (n > 0)
		power_ends(b, segment, last[2]);
	else
		curve_add_hole(b->curve, segment->start_ns, segment->end_ns);
}
