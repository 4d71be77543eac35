/* From the readings of one domain to energy since open and power now. Pure: no clock, no file. */
#pragma once

#include "now/now.h"
#include "energy/counter.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { METER_POINTS = 16 };

struct meter_point { // the counter when it was seen to have moved
	int64_t t_ns, energy_uj;
};

struct meter {
	const struct domain *domain; // borrowed
	struct counter counter;
	struct meter_point points[METER_POINTS]; // a ring; the last one is `newest`
	size_t n_points, newest;
	int64_t seen_ns; // look at which the newest point was made
	int64_t last_power_ns;
	int64_t join_most_ns; // power readings that are further apart are not joined: what was in between nobody knows
	double last_power_w;  // of the sensor's own reading; NaN unknown
	bool had_power;       // ever
	double integrated_uj;
	double power_w;    // NaN unknown
	int64_t energy_uj; // since counting began; never falls
	int64_t added_uj;  // by the last look
};

void meter_init(struct meter *meter, const struct domain *domain);
// How often it will be fed: readings that come as they should are joined, however rare they are.
void meter_set_interval(struct meter *meter, int64_t interval_ns);
// Counting goes on from where an earlier meter of the same domain was; the hardware's counter too, if the machine has not started anew
// since. Before the first reading.
void meter_resume(struct meter *meter, const struct now_kept *kept, bool same_boot);
// One reading: the domain's row of a look. suspended: the machine slept since the look before.
void meter_feed(struct meter *meter, int64_t t_ns, const int64_t *row, bool suspended);
