/* The devices' part of a tick, and the quick looks between two ticks that find the moments at which counters are updated. */
#pragma once

#include "sampler/sampler.h"

// Reads all sensors and adds a record a device.
void devices_sample(struct sampler *sampler, int64_t t_ns, bool suspended, struct batch *batch);

/* Reads the counters alone. Only a change is stored, and with it the reading just before if no record has it yet: the two
 * say between which instants the hardware made its update. */
void devices_look(struct sampler *sampler, int64_t t_ns, struct batch *batch);

/* Adds a record with energy and power for each device that has a counter and power readings. One such reading after the target's
 * end shows whether power fell there. */
void devices_read_power(struct sampler *sampler, int64_t t_ns, struct batch *batch);
