/* error_j is half of a 95 % interval: the true energy lies within energy_j ± error_j nineteen times in twenty.
 *
 * Of one domain:  error = sqrt((relative · E)² + 4 · (sum of the variances below))
 *
 *   relative    what the reading itself may be off, as 95 % limits: the sensor's stated gain error; integrated power
 *               is given at least 5 % (a sensor that looks at a part of the time only), a load model 50 %.
 *   quantum     the counter's step at both ends of each segment: step² / 12.
 *   edges       a counter tells the energy up to its last update, which at each end lies anywhere within one update
 *               period: (P · period)² / 12 with the power P near that end. A period that is not known is taken as
 *               the sampling interval, at most 100 ms.
 *   rounding    integrated power: the trapezoid rule's error by second differences.
 *   holes       time without a reading, or lost at a counter reset: half of P · dt, with the mean power of the rest.
 *               So the interval reaches from nothing used in the hole to twice the mean power.
 *
 * Of a sum: the root of the sum of the squares; but domains that one model estimated are wrong together, so their
 * errors add up first.
 *
 * The error is that of the energy. How it is divided among programs has no error bar: the method is named instead. */
#include "analysis/uncertainty.h"

#include "analysis/facts.h"
#include "base/util.h"

static const double relative_floor[PROVENANCE_KINDS] = {
	[PROVENANCE_MEASURED] = 0,
	[PROVENANCE_DERIVED] = 0.05,
	[PROVENANCE_ESTIMATED] = 0,
};
static const double estimated_default = 0.5;
static const double unknown_period_max_s = 0.1;

static double relative_error(const struct domain_finding *domain)
{
	double stated = domain->device->relative_error;
	if (domain->provenance == PROVENANCE_ESTIMATED)
		return stated > 0 ? stated : estimated_default;
	double floor = relative_floor[domain->provenance];
	return stated > floor ? stated : floor;
}

double update_period_s(const struct run_device *device, const struct curve *curve)
{
	double stated_s = device->update_period_s > 0 ? device->update_period_s : (double)NAN;
	double seen_s = curve->smallest_step_s;
	// Changes that are never in neighbouring samples: the counter is slower than the sampling.
	bool slower = !curve->from_power && seen_s > 1.5 * curve->sample_s;
	return slower && !(seen_s <= stated_s) ? seen_s : stated_s;
}

static double edge_period_s(const struct run *run, const struct domain_finding *domain)
{
	if (domain->update_period_s > 0)
		return domain->update_period_s;
	double interval_s = run_fact_double(run, FACT_INTERVAL) / 1e9;
	return interval_s < unknown_period_max_s ? interval_s : unknown_period_max_s;
}

static double square(double x)
{
	return x * x;
}

// Mean power over the first or last `span_s` of a segment's points.
static double mean_near_w(const struct curve *curve, size_t segment, bool at_end, double span_s)
{
	struct slice points = curve->segments[segment];
	int64_t begin_ns = curve->t_ns[points.begin], end_ns = curve->t_ns[points.end - 1];
	int64_t span_ns = (int64_t)(span_s * 1e9);
	int64_t from_ns = at_end && end_ns - span_ns > begin_ns ? end_ns - span_ns : begin_ns;
	int64_t to_ns = !at_end && begin_ns + span_ns < end_ns ? begin_ns + span_ns : end_ns;
	if (to_ns <= from_ns)
		return 0;
	double j = curve_at(curve, segment, to_ns) - curve_at(curve, segment, from_ns);
	return j / ((double)(to_ns - from_ns) / 1e9);
}

/* Power may change just there, so what counts is the larger of the mean of a second and of the last few updates. */
static double power_near_w(const struct curve *curve, size_t segment, bool at_end, double period_s)
{
	double near_s = 2 * (curve->sample_s > period_s ? curve->sample_s : period_s);
	double second_w = mean_near_w(curve, segment, at_end, 1);
	double near_w = near_s > 0 ? mean_near_w(curve, segment, at_end, near_s) : 0;
	return near_w > second_w ? near_w : second_w;
}

static double edges_variance_j2(const struct run *run, const struct domain_finding *domain, const struct curve *curve)
{
	double period_s = edge_period_s(run, domain), variance_j2 = 0;
	double quantum_j = domain->device->resolution_j > 0 ? domain->device->resolution_j : 0;
	for (size_t s = 0; s < run->n_segments; s++) {
		if (curve->segments[s].begin == curve->segments[s].end)
			continue;
		variance_j2 += square(power_near_w(curve, s, false, period_s) * period_s) / 12;
		variance_j2 += square(power_near_w(curve, s, true, period_s) * period_s) / 12;
		variance_j2 += 2 * square(quantum_j) / 12;
	}
	return variance_j2;
}

double domain_error_j(const struct run *run, const struct domain_finding *domain, const struct curve *curve,
	double lost_s2)
{
	double variance_j2 = curve->from_power ? curve->rounding_j2 : edges_variance_j2(run, domain, curve);
	double mean_w = domain->mean_w > 0 ? domain->mean_w : 0;
	variance_j2 += square(0.5 * mean_w) * (curve->hole_squares_s2 + lost_s2);
	return sqrt(square(relative_error(domain) * domain->energy_j) + 4 * variance_j2);
}

double part_error_j(const struct run *run, const struct domain_finding *domain, const struct curve *curve,
	double part_j, double mean_w, size_t n_intervals)
{
	// Between two points the curve is a straight line, so an edge inside it is off by the power's change there.
	double period_s = edge_period_s(run, domain);
	if (curve->sample_s > period_s)
		period_s = curve->sample_s;
	double edge_j = square(mean_w * period_s) / 12 * 2 * (double)n_intervals;
	return sqrt(square(relative_error(domain) * part_j) + 4 * edge_j);
}

void error_sum_add(struct error_sum *sum, const struct domain_finding *domain, double error_j)
{
	if (domain->provenance == PROVENANCE_ESTIMATED)
		sum->model_j += error_j;
	else
		sum->independent_j2 += square(error_j);
}

double error_sum_j(const struct error_sum *sum)
{
	return sqrt(square(sum->model_j) + sum->independent_j2);
}

double total_error_j(const struct domain_finding *domains, size_t n_domains)
{
	struct error_sum sum = {0};
	for (size_t i = 0; i < n_domains; i++)
		if (domains[i].in_total && !isnan(domains[i].energy_j))
			error_sum_add(&sum, &domains[i], domains[i].error_j);
	return error_sum_j(&sum);
}
