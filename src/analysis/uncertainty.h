/* How wrong an energy may be: rules at the top of uncertainty.c. */
#pragma once

#include "analysis/curve.h"
#include "analysis/findings.h"

// Least time between two updates of the domain's reading, NaN unknown: what the sensor measured, or more if the
// samples show that it is slower.
double update_period_s(const struct run_device *device, const struct curve *curve);
// Half of the 95 % interval of a domain's energy over the run. lost_s2: squares of the times lost at resets.
double domain_error_j(const struct run *run, const struct domain_finding *domain, const struct curve *curve,
	double lost_s2);
// Of the sum of all domains that enter the total.
double total_error_j(const struct domain_finding *domains, size_t n_domains);
// Of the part of a domain's energy that lies in n_intervals intervals of time, at this mean power.
double part_error_j(const struct run *run, const struct domain_finding *domain, const struct curve *curve,
	double part_j, double mean_w, size_t n_intervals);
// Adds a further domain's error to a sum of errors; see total_error_j.
struct error_sum {
	double independent_j2, model_j;
};
void error_sum_add(struct error_sum *sum, const struct domain_finding *domain, double error_j);
double error_sum_j(const struct error_sum *sum);
