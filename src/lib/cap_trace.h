/* The energy of one device at given instants, from readings of its counter that are made between two of its updates or
 * more often. Pure: no clock, no file.
 *
 * A counter tells the energy at its last update, up to a period ago. An instant is marked when it is there, and known when the
 * first update after it has been seen: between two updates power is taken as constant. An update happened between the reading
 * that still had the old value and the one that had the new. */
#pragma once

#include "energy/counter.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { CAP_MARKS = 4 };

struct cap_mark {
	int64_t t_ns;
	double energy_j, error_j; // since the trace began; error: half of a 95 % interval
	bool is_known;
};

struct cap_trace {
	const struct domain *domain; // borrowed
	struct counter counter;
	int64_t last_look_ns; // of the last reading that could be made
	int64_t last_t_ns;    // of the last update, and how far off that may be
	int64_t last_off_ns;
	double last_j;
	double power_w; // domains that tell power only: the last reading
	uint64_t n_updates;
	bool is_primed, is_lost; // lost: the counter was reset, or can't be told from one that was
	struct cap_mark marks[CAP_MARKS];
};

void cap_trace_init(struct cap_trace *trace, const struct domain *domain);
// One reading at t_ns; row as the sensor fills it.
void cap_trace_feed(struct cap_trace *trace, int64_t t_ns, const int64_t row[DEVICE_COUNT]);
// t_ns is not before an earlier reading's time. What the mark said before is forgotten.
void cap_trace_mark(struct cap_trace *trace, size_t mark, int64_t t_ns);
