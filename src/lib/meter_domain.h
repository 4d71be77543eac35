/* What one domain used between two readings, and how far off that may be. Pure: no clock, no file. */
#pragma once

#include "energy/counter.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stdint.h>

struct meter_domain {
	const struct domain *domain; // borrowed
	bool is_model;               // its power is the load model's mean since the reading before, and is added up
	bool in_total;               // lies in no other domain that is added
	struct counter counter;
	int64_t start_ns, last_t_ns;
	bool is_whole;   // nothing of the energy since start is unknown
	double energy_j; // model: since start
	double before_w; // mean power from the start before to this one; NaN unknown
};

struct meter_amount {
	double energy_j, error_j;   // NaN unknown
	double calibration_error_j; // of energy_j, beside error_j: the gain of a GPU's sensor; NaN: no statement is known
};

void meter_domain_init(struct meter_domain *domain, const struct domain *description);
// row: one reading of the domain, as its sensor fills it. suspended: the machine slept since the reading before.
void meter_domain_start(struct meter_domain *domain, int64_t t_ns, const int64_t row[DEVICE_COUNT]);
void meter_domain_feed(struct meter_domain *domain, int64_t t_ns, const int64_t row[DEVICE_COUNT], bool suspended);
// It is a counter that was reset, skipped or not to be read since start: what it would have told is missing in any sum.
bool meter_domain_is_lost(const struct meter_domain *domain);
// Since start, up to what was fed last.
struct meter_amount meter_domain_amount(const struct meter_domain *domain);
