/* The parts of the powercap sensor. */
#pragma once

#include "sensor/powercap_tree.h"
#include "sensor/privileged.h"
#include "sensor/sensor.h"

// domains[i] is fed from counter i; there are n of both.
struct powercap {
	struct domain *domains;     // owned
	struct privileged counters; // energy_uj
	size_t n;
};

/* powercap_domains.c: which domains the zones are, from their names and parents alone: fills name, kind, inside,
 * device, index, and `used` with `why` for those that show the counter of another one. `readable` must be known
 * already. zones[i] describes domains[i]. */
void powercap_name_domains(const struct zone *zones, struct domain *domains, size_t n, bool dies_share_counter);
// Whether a zone's name is that of an energy domain.
bool powercap_zone_is_known(const struct zone *zone);

/* powercap_period.c: watches the counters for at most limit_ns and fills update_period_ns where it saw enough. */
void powercap_measure_periods(struct powercap *powercap, const struct wattle_env *env, int64_t limit_ns);
