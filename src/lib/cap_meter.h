/* Energy of the devices that a search limits, between two instants, while the program's own thread works: a thread reads the
 * counters so often that their updates are seen. */
#pragma once

#include "cap/device.h"
#include "cap/tune/meter.h"

struct cap_meter;

/* -ENOTSUP with a sentence: there is nothing that gives the energy of one of the devices, or only a model's guess. env outlives
 * it. */
int cap_meter_open(const struct wattle_env *env, struct cap_device *const *devices, size_t n,
	struct cap_meter **ret_meter, struct wattle_error *reterr);
void cap_meter_close(struct cap_meter *meter); // NULL allowed

// Marks are 0 to TRACK_MARKS - 1; a new one takes the place of the old. The instant, CLOCK_MONOTONIC.
int64_t cap_meter_mark(struct cap_meter *meter, size_t mark);
// True when both are known, and the energy between them.
bool cap_meter_between(struct cap_meter *meter, size_t from, size_t to, struct tune_span *ret_span);
// How often the slowest of the counters was updated so far.
uint64_t cap_meter_updates(struct cap_meter *meter);
bool cap_meter_is_lost(struct cap_meter *meter); // a counter was reset: nothing can be told any more
