/* Sums of ledgers; each joule is in one row. idle_j is NaN where idle energy cannot be separated; the other rows then
 * include it, and a sum of ledgers has the idle energy of those ledgers that know theirs. */
#pragma once

#include "analysis/energy/attribute.h"
#include "analysis/findings.h"
#include "energy/curve.h"

struct ledger ledger_unknown(void); // all NaN
struct ledger ledger_empty(void);   // all 0, to start a sum
void ledger_add(struct ledger *sum, const struct ledger *part);
double ledger_sum(const struct ledger *ledger);

/* Errors of energies: see the rules at the top of uncertainty.c. */

// Half of the 95 % interval of a domain's energy over the run. lost_s2: sum of the squares of the times lost at resets,
// s²; hidden_rounds: number of times the counter could have wrapped unseen.
double domain_error_j(const struct run *run, const struct domain_finding *domain, const struct curve *curve,
	double lost_s2, int64_t hidden_rounds);
// Calibration error of an energy, separate from domain_error_j. The errors of several domains add up linearly.
double calibration_error_j(const struct run_device *device, double energy_j);
// Error of the target's part of a domain's energy; uncertainty_j is the attribution error.
double target_error_j(const struct domain_finding *domain, double uncertainty_j);

// Adds the calibration errors of a domain that is part of the total to the run's sums.
void calibration_add(struct findings *findings, const struct domain_finding *domain);

/* Errors of several domains. Errors of meters are independent; errors of domains that one model estimated are
 * correlated, and so are those of domains divided by the same method. */
struct error_sum {
	double independent_j2, model_j, uncertainty_j[DOMAIN_KINDS + 1];
};
// For the whole domain: error_j is the meter's and uncertainty_j is 0.
void error_sum_add(struct error_sum *sum, const struct domain_finding *domain, double error_j, double uncertainty_j);
double error_sum_j(const struct error_sum *sum);

/* The error of a part of a domain's energy that consists of several time intervals. */
struct part_error {
	double variance_j2, linear_j, uncertainty_j;
};
// Adds one interval. `doubt`: errors of the energy between the two instants; `fraction`: the part's share if several
// share it.
void part_error_add(struct part_error *part, const struct edge_uncertainty *uncertainty,
	const struct attribution_point *from, const struct attribution_point *to, double fraction);
// part_j: the energy of all added intervals.
double part_error_j(const struct part_error *part, const struct domain_finding *domain, double part_j);

/* Cross-check of counter and power: a domain that has both is measured twice. */

// Fills integrated_j, integrated_error_j and disagrees of a domain whose energy comes from a counter. -ENOMEM.
int crosscheck(const struct findings *findings, struct domain_finding *domain, const struct curve *counter);

/* Energy of each domain: amount, error and attribution. */

struct metering { // data that blocks, charts and traces reuse
	struct metering_domain {
		struct curve curve;
		struct attribution attribution;
	} * domains; // same index as findings.domains
};

/* Fills domains, total_j, error_j, provenance and ledger of *findings. The metering is in `arena` and points to the
 * windows. -ENOMEM. */
int domains_make(struct findings *findings, const struct windows *windows, struct arena *arena,
	struct metering *ret_metering);
