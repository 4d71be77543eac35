/* One tick: reads every sensor, the machine and the target, and appends records to a batch. It knows no timer, no
 * file and no store; the recorder calls it, and so do tests with a clock of their own. */
#pragma once

#include "base/env.h"
#include "metric/metric.h"
#include "process/machine.h"
#include "process/memory.h"
#include "process/tree.h"
#include "energy/counter.h"
#include "sensor/sensor.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLER_EVENTS_MAX = 64 };

struct sampler_options {
	int64_t interval_ns;
	double budget_percent; // --budget
	bool per_process;      // --per-process
};

struct device_look {
	int64_t t_ns, energy_uj; // extended; VALUE_MISSING: none
	bool stored;
};

struct device_told {
	int64_t throttle_bits;
	int64_t cap_mw; // 0: none seen yet
	char note[160];
};

struct sampler {
	const struct wattle_env *env; // borrowed, as are the next two
	struct sensor_set *sensors;
	struct tree *tree;
	struct sampler_options options;
	struct machine machine;
	struct memory_reader memory;
	struct memory_estimate estimate;
	struct counter *counters;      // owned: one a device
	int64_t (*rows)[DEVICE_COUNT]; // owned: one a device
	struct edge_watch *watches;    // owned: one a device, when its counter is updated
	struct update_period *periods; // owned: one a device: as its sensor states it, then as it is seen
	struct device_look *looks;     // owned: one a device, the last reading, which may not be stored
	struct device_told *told;      // owned: one a device, what the events have said of it
	bool *left; // owned: one a device, whether another recorder reads it (sampler/claims.h); none is at first
	pid_t self_pid;
	int64_t proc_t_ns; // when /proc was read last: the machine, the tree
	struct machine_reading machine_reading;
	int64_t suspended_ns; // CLOCK_BOOTTIME - CLOCK_MONOTONIC at the last tick
	int64_t last_t_ns;
	int referee_fd;    // borrowed; -1: none
	int64_t slow_t_ns; // when it and our own memory were read last: once a second is enough
	int64_t n_samples;
	bool target_held;            // the command waits to be let go: what stands there is a copy of us
	bool read_all;               // the next tick reads /proc even if it was read just before
	int64_t last_rss_bytes;      // sum over the target
	int64_t peak_rss_bytes;      // largest such sum
	int64_t main_peak_rss_bytes; // VmHWM of the root process
	int64_t hwm_t_ns;            // when VmHWM was read last
	struct store_event events[SAMPLER_EVENTS_MAX]; // since the last sampler_forget_events
	size_t n_events, n_events_lost;
};

int sampler_open(struct sampler *sampler, const struct wattle_env *env, struct sensor_set *sensors, struct tree *tree,
	const struct sampler_options *options); // -ENOMEM
void sampler_close(struct sampler *sampler);
static inline bool sampler_reads(const struct sampler *sampler, size_t device)
{
	return sampler->left == NULL || !sampler->left[device];
}
// After `left` has changed: sensors that have nothing for us are not read.
void sampler_choose_sensors(struct sampler *sampler);
// Takes one sample. What does not fit into the batch is counted in batch->n_lost.
void sampler_tick(struct sampler *sampler, int64_t t_ns, struct batch *batch);
void sampler_event(struct sampler *sampler, const struct event *event); // its texts are copied, but for `sensor`
void sampler_forget_events(struct sampler *sampler);

/* The devices' part of a tick, and the quick looks between two ticks that find the moments at which counters are updated. */

// Reads all sensors and adds a record a device.
void devices_sample(struct sampler *sampler, int64_t t_ns, bool suspended, struct batch *batch);

/* Reads the counters alone. Only a change is stored, and with it the reading just before if no record has it yet: the two
 * say between which instants the hardware made its update. */
void devices_look(struct sampler *sampler, int64_t t_ns, struct batch *batch);

/* Adds a record with energy and power for each device that has a counter and power readings. One such reading after the target's
 * end shows whether power fell there. */
void devices_read_power(struct sampler *sampler, int64_t t_ns, struct batch *batch);

/* When to look between two ticks, for two reasons.
 *
 * So that the moments at which slow counters are updated are known: a round of looks at the start, a short one every half
 * minute, and one at the end until each counter has been updated once more. Counters that are updated about every
 * millisecond need none of this, nor does a sampling that is as fast as the looks.
 *
 * So that no wrap is missed, however seldom samples are taken: a counter is read at least four times in the time that the
 * most plausible power needs to fill it. */

struct probe {
	struct sampler *sampler; // borrowed
	size_t *edges_wanted;    // owned: one a device, edges of its watch at which this round is done with it
	int64_t began_ns;        // this round
	int64_t next_round_ns;
	bool is_first, active;
};

int probe_open(struct probe *probe, struct sampler *sampler, int64_t now_ns); // -ENOMEM
void probe_close(struct probe *probe);
void probe_again(struct probe *probe, int64_t now_ns); // as at the start: counters became ours to read
// The time of the next look or, between two rounds, of the next round's first; VALUE_MISSING: never again.
int64_t probe_next_ns(struct probe *probe, int64_t now_ns);

/* After the last tick. Begins the last round; probe_last_ns then gives times until every slow counter has been updated
 * since, or could have been. VALUE_MISSING: done. */
void probe_finish(struct probe *probe, int64_t start_ns, int64_t end_ns);
int64_t probe_last_ns(struct probe *probe, int64_t now_ns);
