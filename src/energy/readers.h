/* Who of a job has read a device, as the recorder's events of kind `sensors` tell it (sampler/claims.c). */
#pragma once

#include "store/run.h"

// The first that says that another recorder reads it; NULL: it was ours from the start on.
const struct event *readers_elsewhere(const struct run *run, const struct run_device *device);
// Whether another one is told of after that.
bool readers_are_several(const struct run *run, const struct event *first, const struct run_device *device);
// It became ours; NULL: it did not.
const struct event *readers_takeover(const struct run *run, const struct run_device *device);
/* When it became ours in a segment that began when it was another's: what was used before is in that one's recording. The segment's start
 * where it was ours all the time, its end where it never was. */
int64_t readers_ours_from_ns(const struct run *run, const struct run_device *device, size_t segment);
