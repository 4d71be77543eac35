/* One tick: reads every sensor, the machine and the target, and appends records to a batch. It uses no timer, file
 * or store; the recorder calls it, and so do tests with a simulated clock. */
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

struct device_poll {
	int64_t t_ns, energy_uj; // extended; VALUE_MISSING: none
	bool stored;
};

struct device_reported {
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
	struct counter *counters;      // owned, one per device
	int64_t (*rows)[DEVICE_COUNT]; // owned, one per device
	struct update_detector *detectors; // owned, one per device: update times of its counter
	struct update_period *periods; // owned, one per device: as stated by its sensor, then as observed
	struct device_poll *polls;     // owned, one per device: the last reading, possibly not stored
	struct device_reported *reported; // owned, one per device: state according to the events so far
	bool *left; // owned, one per device: whether another recorder reads it (struct sensor_locks); initially none
	pid_t self_pid;
	int64_t proc_t_ns; // time of the last reading of /proc: machine and tree
	struct machine_reading machine_reading;
	int64_t suspended_ns; // CLOCK_BOOTTIME - CLOCK_MONOTONIC at the last tick
	int64_t last_t_ns;
	int referee_fd;    // borrowed; -1: none
	int64_t slow_t_ns; // last reading of referee_fd and of wattle's own memory; once a second is enough
	int64_t n_samples;
	bool target_held;            // the command has not been released: the process is still a copy of the recorder
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
// Call after a change of `left`: sensors whose devices are all read by other recorders are not read.
void sampler_choose_sensors(struct sampler *sampler);
// Takes one sample. Records that do not fit into the batch are counted in batch->n_lost.
void sampler_tick(struct sampler *sampler, int64_t t_ns, struct batch *batch);
void sampler_event(struct sampler *sampler, const struct event *event); // texts are copied, except `sensor`
void sampler_forget_events(struct sampler *sampler);

/* The devices' part of a tick, and the quick readings between two ticks that find the update times of counters. */

// Reads all sensors and adds a record for each device.
void devices_sample(struct sampler *sampler, int64_t t_ns, bool suspended, struct batch *batch);

/* Reads only the counters. Only a reading with a change is stored, together with the previous reading if that is in no
 * record yet: the hardware updated the counter between the two. */
void devices_poll(struct sampler *sampler, int64_t t_ns, struct batch *batch);

/* Adds a record with energy and power for each device that has a counter and power readings. Such a reading after
 * the target's end shows whether power fell there. */
void devices_read_power(struct sampler *sampler, int64_t t_ns, struct batch *batch);

/* Times of readings between two ticks, for two purposes.
 *
 * Update times of slow counters: a round of readings at the start, a short one every half minute, and one at the end until
 * each counter has been updated once more. Not needed for counters that are updated about every millisecond, or if
 * sampling is as fast as these readings.
 *
 * Detection of wraps at any sampling interval: a counter is read at least four times within the shortest time in which
 * it can wrap at the highest plausible power. */

struct poll_schedule {
	struct sampler *sampler; // borrowed
	size_t *updates_wanted;  // owned, one per device: number of updates after which this round no longer needs it
	int64_t began_ns;        // this round
	int64_t next_round_ns;
	bool is_first, active;
};

int poll_schedule_open(struct poll_schedule *schedule, struct sampler *sampler, int64_t now_ns); // -ENOMEM
void poll_schedule_close(struct poll_schedule *schedule);
void poll_schedule_restart(struct poll_schedule *schedule,
	int64_t now_ns); // as at the start: this recorder took over counters
// The time of the next reading or, between two rounds, of the next round's first; VALUE_MISSING: never again.
int64_t poll_schedule_next_ns(struct poll_schedule *schedule, int64_t now_ns);

/* After the last tick. Begins the last round; poll_schedule_last_ns then gives times until every slow counter has been
 * updated since, or could have been. VALUE_MISSING: done. */
void poll_schedule_finish(struct poll_schedule *schedule, int64_t start_ns, int64_t end_ns);
int64_t poll_schedule_last_ns(struct poll_schedule *schedule, int64_t now_ns);
