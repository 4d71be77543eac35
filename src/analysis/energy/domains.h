/* Each joule in one row. idle_j is NaN where idle energy cannot be separated from the rest: the other rows hold it then, and a
 * sum of ledgers has the idle energy of those that know theirs. */
#pragma once

#include "analysis/energy/attribute.h"
#include "analysis/findings.h"
#include "energy/curve.h"

struct ledger ledger_unknown(void); // all NaN
struct ledger ledger_empty(void);   // to add to
void ledger_add(struct ledger *sum, const struct ledger *part);
double ledger_sum(const struct ledger *ledger);

/* How wrong an energy may be: rules at the top of uncertainty.c. */

// Half of the 95 % interval of a domain's energy over the run. lost_s2: squares of the times lost at resets;
// hidden_rounds: how often the counter had time to wrap unseen.
double domain_error_j(const struct run *run, const struct domain_finding *domain, const struct curve *curve,
	double lost_s2, int64_t hidden_rounds);
// calibration_error of an amount of energy, beside domain_error_j. The errors of several domains are added.
double calibration_error_j(const struct run_device *device, double energy_j);
// Of the target's part of it; doubt_j is the attribution's.
double target_error_j(const struct domain_finding *domain, double doubt_j);

// Of a run's sums: those of a domain that is in its total are added.
void calibration_add(struct findings *findings, const struct domain_finding *domain);

/* Errors of several domains. Meters are wrong independently; domains that one model estimated are wrong together, and so
 * are those whose energy was divided by the same method. */
struct error_sum {
	double independent_j2, model_j, doubt_j[DOMAIN_KINDS + 1];
};
// Of the whole domain: error_j is the meter's and doubt_j 0.
void error_sum_add(struct error_sum *sum, const struct domain_finding *domain, double error_j, double doubt_j);
double error_sum_j(const struct error_sum *sum);

/* The error of a part of a domain's energy, made of intervals of time. */
struct part_error {
	double variance_j2, linear_j, doubt_j;
};
// `doubt` is of the energy between the two instants; `fraction` of it counts, where several share it.
void part_error_add(struct part_error *part, const struct edge_doubt *doubt, const struct attribution_point *from,
	const struct attribution_point *to, double fraction);
// part_j: the sum of those intervals.
double part_error_j(const struct part_error *part, const struct domain_finding *domain, double part_j);

/* Counter against power: a domain that has both is measured twice. */

// Fills integrated_j, integrated_error_j and disagrees of a domain whose energy comes from a counter. -ENOMEM.
int crosscheck(const struct findings *findings, struct domain_finding *domain, const struct curve *counter);

/* Energy of each domain: how much, how wrong, whose. */

struct metering { // what blocks, charts and traces need again afterwards
	struct metering_domain {
		struct curve curve;
		struct attribution attribution;
	} * domains; // as findings.domains
};

/* Fills domains, total_j, error_j, provenance and ledger of *findings; the metering lies in `arena` and points at the windows.
 * -ENOMEM. */
int domains_make(struct findings *findings, const struct windows *windows, struct arena *arena,
	struct metering *ret_metering);
