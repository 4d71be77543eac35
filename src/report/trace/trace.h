/* Exports a run as a native Perfetto trace (protobuf, perfetto.dev/docs/reference/trace-packet-proto): counters with
 * units; spans as slices on process and thread tracks, with energy in their arguments; caps, throttling and gaps as
 * instants. Times are exact ns on CLOCK_MONOTONIC. Clock snapshots supply the wall clock and CLOCK_BOOTTIME, which align
 * other traces of the same run. */
#pragma once

#include "analysis/chart/chart.h"
#include "base/buf.h"

// `more` is called from time to time, so that the caller can flush and clear `out`: the trace of a long run can exceed
// memory. -ENOMEM.
int trace_perfetto(const struct findings *findings, struct buf *out, void (*more)(void *data), void *data);
