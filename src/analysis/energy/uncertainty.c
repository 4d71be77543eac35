/* error_j is half of a 95 % interval: the true energy lies within energy_j ± error_j nineteen times in twenty.
 *
 * Of one domain: error = sqrt((relative · E)² + 4 · (sum of the variances below)), but at least one step of the counter
 *
 *   relative    relative error of the reading, as 95 % limits: the sensor's stated error; at least 5 % for integrated
 *               power (except that of GPUs, see calibration), 50 % for a load model.
 *   quantum     the counter's step at both ends of each segment: step² / 12.
 *   edges       start and end of the run between two updates of the counter: edge.c.
 *   rounding    integrated power: the trapezoid rule's error by second differences.
 *   holes       time without a reading, in which the counter stood still, or lost at a counter reset: no energy is
 *               assumed there, so P · dt is missing, with P at most the largest power seen, as half of a 95 % interval.
 *               A short time before the first reading has the power after it, and the same error.
 *   unseen      a run so short that the counter never moved: the most that a domain of this kind can use in an update.
 *   rounds      a counter that had time to wrap unseen: one counter range, as half of a 95 % interval each.
 *
 * Of a sum: the root of the sum of the squares; but errors of domains that one model estimated are correlated, so they
 * add up linearly first.
 *
 * calibration_error_j is separate: the gain of a GPU's power sensor, which also affects the counter that integrates the
 * same sensor (sensor/gpu_gain.h). error_j does not include it: it is the same in every run on one card, and
 * calibration of the card removes it. The correlation between the gains of several GPUs is unknown (one model, one
 * design), so they add up linearly.
 *
 * Of the target's part: its share of the domain's error, and the error of the attribution (attribute.c). */
#include "analysis/energy/domains.h"

#include "base/nan_sum.h"
#include "base/util.h"
#include "sensor/gpu_gain.h"

static const double relative_floor[PROVENANCE_KINDS] = {
	[PROVENANCE_MEASURED] = 0,
	[PROVENANCE_DERIVED] = 0.05,
	[PROVENANCE_ESTIMATED] = 0,
};
static const double estimated_default = 0.5;

double calibration_error_j(const struct run_device *device, double energy_j)
{
	return calibration_error(device) * fabs(energy_j);
}

void calibration_add(struct findings *findings, const struct domain_finding *domain)
{
	const struct run_device *device = domain->device;
	double target_j = calibration_error_j(device, domain->ledger.target_j);
	findings->calibration_error_j = nan_sum(findings->calibration_error_j, domain->calibration_error_j);
	findings->target_calibration_error_j = nan_sum(findings->target_calibration_error_j, target_j);
}

static double relative_error(const struct domain_finding *domain)
{
	double stated = domain->device->relative_error;
	if (domain->provenance == PROVENANCE_ESTIMATED)
		return stated > 0 ? stated : estimated_default;
	if (!isnan(calibration_error(domain->device))) // run files of older versions hold both errors as one
		return 0;
	double floor = relative_floor[domain->provenance];
	return stated > floor ? stated : floor;
}

static double square(double x)
{
	return x * x;
}

// Squared error of the run's ends, over all segments; half of a 95 % interval.
static double ends_j2(const struct curve *curve)
{
	double variance_j2 = 0, linear_j = 0, quantum_j = curve->from_power ? 0 : curve->updates.quantum_j;
	for (size_t s = 0; s < curve->n_segments; s++) {
		const struct curve_segment *segment = &curve->segments[s];
		if (segment->points.begin == segment->points.end)
			continue;
		struct edge_uncertainty uncertainty = edge_between(curve, s, segment->start_ns, segment->end_ns);
		variance_j2 += uncertainty.variance_j2 + 2 * square(quantum_j) / 12;
		linear_j += uncertainty.linear_j;
	}
	return 4 * variance_j2 + square(linear_j);
}

double domain_error_j(const struct run *run, const struct domain_finding *domain, const struct curve *curve,
	double lost_s2, int64_t hidden_rounds)
{
	double max_w = domain->max_w > 0 ? domain->max_w * (1 + relative_error(domain)) : 0;
	double holes_j2 = square(max_w) * (curve->hole_squares_s2 + lost_s2);
	holes_j2 += square(domain_kind_max_power_w(domain->device->kind) * curve->unseen_s);
	double round_j = domain->device->energy_range_j > 0 ? domain->device->energy_range_j : 0;
	double error_j = sqrt(square(relative_error(domain) * domain->energy_j) + ends_j2(curve) +
		4 * curve->rounding_j2 + holes_j2 + (double)hidden_rounds * square(round_j));
	double quantum_j = curve->from_power ? 0 : curve->updates.quantum_j;
	return error_j > quantum_j ? error_j : quantum_j;
}

double target_error_j(const struct domain_finding *domain, double uncertainty_j)
{
	double share = domain->energy_j > 0 ? domain->ledger.target_j / domain->energy_j : 0;
	return sqrt(square(share * domain->error_j) + square(uncertainty_j));
}

static enum domain_kind divided_like(enum domain_kind kind)
{
	return kind == DOMAIN_DRAM || kind == DOMAIN_GPU ? kind : DOMAIN_PACKAGE;
}

void error_sum_add(struct error_sum *sum, const struct domain_finding *domain, double error_j, double uncertainty_j)
{
	if (domain->provenance == PROVENANCE_ESTIMATED)
		sum->model_j += error_j;
	else
		sum->independent_j2 += square(error_j);
	sum->uncertainty_j[divided_like(domain->device->kind)] += uncertainty_j;
}

double error_sum_j(const struct error_sum *sum)
{
	double sum_j2 = square(sum->model_j) + sum->independent_j2;
	for (size_t k = 0; k < ARRAY_SIZE(sum->uncertainty_j); k++)
		sum_j2 += square(sum->uncertainty_j[k]);
	return sqrt(sum_j2);
}

void part_error_add(struct part_error *part, const struct edge_uncertainty *uncertainty,
	const struct attribution_point *from, const struct attribution_point *to, double fraction)
{
	double share = (from->share > to->share ? from->share : to->share) * fraction;
	part->variance_j2 += square(share) * uncertainty->variance_j2;
	part->linear_j += share * uncertainty->linear_j;
	part->uncertainty_j += fraction * (to->part.uncertainty_j - from->part.uncertainty_j);
}

double part_error_j(const struct part_error *part, const struct domain_finding *domain, double part_j)
{
	return sqrt(square(relative_error(domain) * part_j) + 4 * part->variance_j2 + square(part->linear_j));
}
