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
