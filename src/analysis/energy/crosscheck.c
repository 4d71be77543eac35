/* The same energy from power readings. Field reports have counter and power 75 % apart on one card (zeus issue 181),
 * and counters that stand still (rocm_smi_lib issue 180): the report shows both figures so that the reader can find the
 * wrong one.
 *
 * Few readings, or a run that is short compared with a device's averaging time, are no evidence against a counter. */
#include "analysis/energy/domains.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"

#include <errno.h>

enum { READINGS_MIN = 5 };
// Counter and power of one sensor have the same gain, but readings every 100 ms do not average to the counter's
// integral.
static const double same_sensor = 0.05;
static const double averages_min = 3; // minimum length of a run, in averaging times of the device

static bool has_enough_data(const struct findings *findings, const struct curve *power)
{
	return power->n >= READINGS_MIN && findings->duration_s >= averages_min * power->average_s;
}

static int check(const struct findings *findings, struct domain_finding *domain, const struct curve *counter,
	struct arena *arena)
{
	const struct run *run = findings->run;
	struct curve power;
	if (curve_make_from_power(run, domain->device, run_metadata_i64(run, META_KEY_INTERVAL), &counter->updates,
		    arena, &power) < 0)
		return -ENOMEM;
	if (!power.known || !(findings->duration_s > power.hole_s))
		return 0;
	struct domain_finding as_power = {.device = domain->device,
		.provenance = PROVENANCE_DERIVED,
		.energy_j = curve_total_j(&power)};
	as_power.max_w = power.max_power_w;
	domain->integrated_j = as_power.energy_j;
	domain->integrated_error_j = domain_error_j(run, &as_power, &power, 0, 0);
	double apart_j = fabs(domain->energy_j - domain->integrated_j);
	double explained_j = hypot(hypot(domain->error_j, domain->integrated_error_j),
		same_sensor * domain->integrated_j);
	domain->disagrees = apart_j > explained_j && has_enough_data(findings, &power);
	return 0;
}

int crosscheck(const struct findings *findings, struct domain_finding *domain, const struct curve *counter)
{
	if (counter->from_power)
		return 0;
	struct arena *arena = arena_new(); // separate arena: the second curve is freed after the check
	int r = arena != NULL ? check(findings, domain, counter, arena) : -ENOMEM;
	arena_free(arena);
	return r;
}
