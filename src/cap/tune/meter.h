/* Whether a device has reached the limit that was set: its power is steady, and not above the limit any more. Drivers take from
 * some 10 ms to more than a second until a limit acts, and power is steady before that, too. Pure, as the rest of the search. */
#pragma once

#include "base/env.h"
#include "energy/track.h"

#include <stdbool.h>

struct tune_steady {
	double delay_s; // longest time after which a limit was seen to act, in this search
	double least_w; // of a device whose power no limit brought down; 0: there was none
	double before_w,
		above_s; // of the limit that was set last: the stretch before, and the end of the last one above it
};

// A limit that does not act by then does not bring power down.
#define TUNE_SLOWEST_S 3.0

// The same limit for each of several devices. `limit_w` NaN: of clocks, which do not say what power may be.
struct tune_stretch_power {
	double limit_w;
	double sum_w, most_w; // of all devices, and of the one that drew most
	double until_s;       // its end, since the limit was set
};

void tune_steady_begin(struct tune_steady *steady); // another limit was set
// True: the limit acts, and power agrees with that of the stretch before within `tolerance` of itself and half a watt.
bool tune_steady_add(struct tune_steady *steady, const struct tune_stretch_power *stretch, double tolerance);
// Whether one device draws more than the limit lets it.
bool tune_steady_is_above(const struct tune_steady *steady, double limit_w, double w);
void tune_steady_learn(struct tune_steady *steady, double delay_s); // a limit was seen to act after so long

/* Energy of the devices that a search limits, between marks that are set while the program works. Counters are read so often that
 * their updates are seen: an instant is known once the first update after it was. */

// Readings so often see updates of 20 ms to a tenth of that, and those of package counters (1 ms) one by one.
#define TUNE_LOOK_NS (2 * NS_PER_MS)

struct tune_span {
	double energy_j, error_j, seconds; // of all devices together; error: half of a 95 % interval
	double most_j;                     // of the device that used most
};

struct tune_meter {
	const struct wattle_env *env; // borrowed
	struct tune_part {
		const struct sensor_slot *slot;
		size_t domain; // of the slot's
		struct energy_track track;
	} *parts; // owned
	size_t n_parts;
	int64_t (*rows)[DEVICE_COUNT]; // owned: room for the largest slot
};

// n devices of an open set, which outlives the meter; each is added by tune_meter_add. -ENOMEM.
int tune_meter_open(struct tune_meter *meter, const struct wattle_env *env, const struct sensor_set *sensors, size_t n);
void tune_meter_add(struct tune_meter *meter, const struct sensor_slot *slot, size_t domain);
void tune_meter_close(struct tune_meter *meter);

// Reads one sensor of those devices, part `p`'s, for all of them that it has; false: an earlier part's is the same. Then tune_meter_feed.
bool tune_meter_read(struct tune_meter *meter, size_t p, int64_t *ret_t_ns);
void tune_meter_feed(struct tune_meter *meter, size_t p, int64_t t_ns);
void tune_meter_look(struct tune_meter *meter); // both, for all

void tune_meter_mark(struct tune_meter *meter, size_t mark, int64_t t_ns);
// The energy between two marks. False: one of them is not known yet, or never will be. at_once: as far as it is known now.
bool tune_meter_between(struct tune_meter *meter, size_t from, size_t to, bool at_once, struct tune_span *ret_span);
uint64_t tune_meter_updates(const struct tune_meter *meter); // how often the slowest of the counters was updated so far
bool tune_meter_is_lost(const struct tune_meter *meter);     // a counter was reset: nothing can be told any more
