/* The sensors of the machine, as rows that stay where they are from look to look. */
#pragma once

#include "base/env.h"
#include "energy/track.h"
#include "now/limits.h"
#include "now/now.h"
#include "process/machine.h"
#include "sensor/sensor.h"

struct domain_table {
	struct sensor_set sensors;
	int64_t (*rows)[DEVICE_COUNT]; // owned: of the last look, one for each device of the set
	struct energy_track *tracks;   // owned: likewise
	struct now_domain *domains;    // owned: by kind and number
	struct package_limit *limits;  // owned: of each of `domains`
	size_t *device_of;             // owned: domains[i] is device device_of[i] of the set
	size_t n;
	int64_t suspended_ns; // time that the machine had slept at the last look
	char problem[480];    // "": there is energy
};

// -EINVAL: as sensor_set_open; -ENOMEM. *table is to be closed in every case.
int domain_table_open(struct domain_table *table, const struct now_options *options, struct wattle_error *reterr);
void domain_table_keep(const struct domain_table *table, size_t i, struct now_kept *ret_kept);
void domain_table_close(struct domain_table *table);
// Reads all sensors and fills the domains, but not what is attributed.
void domain_table_look(struct domain_table *table, const struct wattle_env *env, const struct sensor_context *context);
