/* A run as a native Perfetto trace (protobuf, perfetto.dev/docs/reference/trace-packet-proto): counters with units, spans as slices on the
 * tracks of their process and thread with joules in their arguments, caps, throttling and gaps as instants. Times are exact ns on
 * CLOCK_MONOTONIC, and clock snapshots tell the wall clock and CLOCK_BOOTTIME, by which other traces of the same run line up. */
#pragma once

#include "analysis/chart/chart.h"
#include "base/buf.h"

// `more` is called now and then, so that `out` may be passed on and cleared: a trace of a long run is larger than memory should be.
// -ENOMEM.
int trace_perfetto(const struct findings *findings, struct buf *out, void (*more)(void *data), void *data);
