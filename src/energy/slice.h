/* Which samples belong to which segment.
 *
 * A recording may take its first sample just before the target starts and its last one just after it has ended, so
 * the time axis is cut in the middle of the pause between two segments: every instant belongs to exactly one. */
#pragma once

#include "store/run.h"

struct slice { // indices begin … end - 1
	size_t begin, end;
};

// First index whose time is not before t_ns; n if there is none.
size_t slice_lower_bound(const int64_t *times_ns, size_t n, int64_t t_ns);
// The same, for a time near that of an index, 0 … n.
size_t slice_lower_bound_near(const int64_t *times_ns, size_t n, int64_t t_ns, size_t near);
// Those later than from_ns and not later than to_ns: a reading tells of the time before it.
struct slice slice_after(const int64_t *times_ns, size_t n, int64_t from_ns, int64_t to_ns);
// The same, found sooner near an index.
struct slice slice_after_near(const int64_t *times_ns, size_t n, int64_t from_ns, int64_t to_ns, size_t near);
// The stretch of the time axis that a segment owns: from_ns included, to_ns not.
int64_t slice_from_ns(const struct run *run, size_t segment);
int64_t slice_to_ns(const struct run *run, size_t segment);
struct slice slice_of(const struct run *run, size_t segment, const int64_t *times_ns, size_t n);
/* Whether a row of a device is a quick look at its energy counter between two samples. It tells nothing else, not even that
 * the other metrics could not be read: whoever asks for those passes over it. */
bool slice_is_look(const struct run_device *device, size_t row);
// Of the run's own samples.
struct slice slice_samples(const struct run *run, size_t segment);

double segment_duration_s(const struct run_segment *segment);
double run_duration_s(const struct run *run); // sum over segments: pauses between them are not counted

/* Who of a job has read a device, as the recorder's events of kind `sensors` tell it (sampler/claims.c). */

// The first that says that another recorder reads it; NULL: it was ours from the start on.
const struct event *readers_elsewhere(const struct run *run, const struct run_device *device);
// Whether another one is told of after that.
bool readers_are_several(const struct run *run, const struct event *first, const struct run_device *device);
// It became ours; NULL: it did not.
const struct event *readers_takeover(const struct run *run, const struct run_device *device);
/* When it became ours in a segment that began when it was another's: what was used before is in that one's recording. The segment's start
 * where it was ours all the time, its end where it never was. */
int64_t readers_ours_from_ns(const struct run *run, const struct run_device *device, size_t segment);
