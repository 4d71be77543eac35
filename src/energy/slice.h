/* Assignment of samples to segments.
 *
 * A recording may take its first sample just before the target's start and its last one just after its end. The time axis is
 * therefore divided in the middle of the pause between two segments: every instant belongs to exactly one segment. */
#pragma once

#include "store/run.h"

struct slice { // indices begin … end - 1
	size_t begin, end;
};

// Returns the first index whose time is not before t_ns; n if there is none.
size_t slice_lower_bound(const int64_t *times_ns, size_t n, int64_t t_ns);
// Same result, found faster if `near` (0 … n) is close to it.
size_t slice_lower_bound_near(const int64_t *times_ns, size_t n, int64_t t_ns, size_t near);
// Samples later than from_ns and not later than to_ns: a reading describes the time before it.
struct slice slice_after(const int64_t *times_ns, size_t n, int64_t from_ns, int64_t to_ns);
// Same result, found faster near an index.
struct slice slice_after_near(const int64_t *times_ns, size_t n, int64_t from_ns, int64_t to_ns, size_t near);
// Start of the time that belongs to a segment: from_ns inclusive, to_ns exclusive.
int64_t slice_from_ns(const struct run *run, size_t segment);
int64_t slice_to_ns(const struct run *run, size_t segment);
struct slice slice_of(const struct run *run, size_t segment, const int64_t *times_ns, size_t n);
/* Whether a row of a device is a quick counter read between two samples. Such a row has no other data, not even that other
 * metrics could not be read: readers of other metrics must skip it. */
bool slice_is_poll(const struct run_device *device, size_t row);
// Samples of the run in a segment.
struct slice slice_samples(const struct run *run, size_t segment);

double segment_duration_s(const struct run_segment *segment);
double run_duration_s(const struct run *run); // sum over segments, without the pauses between them

/* Which recorder of a job has read a device, from the events of kind `sensors` (sampler/sensor_lock.c). */

// Returns the first event that names another recorder as reader; NULL: this recorder read the device from the start.
const struct event *sensor_owner_first_other(const struct run *run, const struct run_device *device);
// Whether a later event names a further recorder.
bool sensor_owner_has_changed(const struct run *run, const struct event *first, const struct run_device *device);
// Returns the event of the takeover by this recorder; NULL: none.
const struct event *sensor_owner_takeover(const struct run *run, const struct run_device *device);
/* Time from which this recorder read the device, in a segment that began under another reader. Earlier energy is in the other
 * recording. It is the segment's start if the device was always ours, and its end if it never was. */
int64_t sensor_owner_own_from_ns(const struct run *run, const struct run_device *device, size_t segment);
