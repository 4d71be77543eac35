/* Detects whether a device follows a newly set limit: its power is steady and no longer above the limit. Drivers take
 * from about 10 ms to more than a second to apply a limit, and power is steady before that as well. Without side
 * effects, like the rest of the search. */
#pragma once

#include "base/env.h"
#include "energy/track.h"

#include <stdbool.h>

struct tune_steady {
	double delay_s; // longest delay, s, until a limit took effect in this search
	double min_w;   // power, W, of a device that its limit did not reduce; 0: none
	double before_w,
		above_s; // for the present limit: previous stretch, and end of the last stretch above the limit
};

// A limit without effect by then is assumed not to reduce power at all.
#define TUNE_SLOWEST_S 3.0

// Power of devices with the same limit. `limit_w` NaN: a clock limit, which does not bound the power.
struct tune_interval_power {
	double limit_w;
	double sum_w, max_w;  // sum of all devices, and highest device power
	double until_s;       // end of the stretch, s since the limit was set
};

void tune_steady_begin(struct tune_steady *steady); // call after setting another limit
// True: the limit is in effect, and power agrees with the previous stretch within the fraction `tolerance` and half a
// watt.
bool tune_steady_add(struct tune_steady *steady, const struct tune_interval_power *interval, double tolerance);
// Whether one device draws more than the limit allows.
bool tune_steady_is_above(const struct tune_steady *steady, double limit_w, double w);
void tune_steady_record(struct tune_steady *steady,
	double delay_s); // records that a limit took effect after this delay

/* Energy of the searched devices between marks that are set while the program works. Counters are read often enough to
 * catch each update; the energy at a mark is known after the first update that follows it. */

// Reading interval: dates updates of 20 ms counters to a tenth of their interval, and catches each update of package
// counters (1 ms).
#define TUNE_POLL_NS (2 * NS_PER_MS)

struct tune_span {
	double energy_j, error_j, seconds; // sum over devices; error_j: half width of the 95 % interval
	double max_j;                      // energy of the device that used most
};

struct tune_meter {
	const struct wattle_env *env; // borrowed
	struct tune_part {
		const struct sensor_slot *slot;
		size_t domain; // index in the slot's domains
		struct energy_track track;
	} *parts; // owned
	size_t n_parts;
	int64_t (*rows)[DEVICE_COUNT]; // owned; room for the largest slot
};

// `set` must be open and outlive the meter; n: number of devices to add with tune_meter_add. -ENOMEM.
int tune_meter_open(struct tune_meter *meter, const struct wattle_env *env, const struct sensor_set *sensors, size_t n);
void tune_meter_add(struct tune_meter *meter, const struct sensor_slot *slot, size_t domain);
void tune_meter_close(struct tune_meter *meter);

// Reads the sensor of part `p` for all of its devices; false: an earlier part already reads this sensor. Call
// tune_meter_feed afterwards.
bool tune_meter_read(struct tune_meter *meter, size_t p, int64_t *ret_t_ns);
void tune_meter_feed(struct tune_meter *meter, size_t p, int64_t t_ns);
void tune_meter_poll(struct tune_meter *meter); // tune_meter_read and tune_meter_feed for all parts

void tune_meter_mark(struct tune_meter *meter, size_t mark, int64_t t_ns);
// Energy between two marks. False: one of them is not known yet, or never will be. at_once: use the readings available
// now.
bool tune_meter_between(struct tune_meter *meter, size_t from, size_t to, bool at_once, struct tune_span *ret_span);
uint64_t tune_meter_updates(const struct tune_meter *meter); // number of updates of the slowest counter so far
bool tune_meter_is_lost(const struct tune_meter *meter);     // a counter was reset: the energy stays unknown
