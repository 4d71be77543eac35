/* Parts shared by the JSON report and the text report. */
#pragma once

#include "analysis/findings.h"
#include "base/buf.h"
#include "base/jsonw.h"

#include <stdbool.h>

// The last segment, for values that only one segment can supply. NULL: the run has none.
const struct run_segment *report_segment(const struct run *run);

// Appends argv of a segment, quoted for a shell, to an empty buffer.
void command_text(struct buf *out, const struct run_segment *segment);
// The same for an argv that is not stored; the caller frees the result. NULL: no memory.
char *command_line_text(const char *const *argv);

// RFC 3339 with microseconds and the local offset: "2026-01-31T12:00:00.123456+01:00".
void rfc3339(struct buf *out, int64_t wall_ns);
// "2026-01-31 12:00:00 +01:00", for readers who need only seconds.
void start_time_text(struct buf *out, int64_t wall_ns);

// Text table of the use of each block, in total and per unit of work.
void blocks_text(const struct findings *findings, struct buf *out, bool colour);
// Factor that converts bytes to the unit of a column.
double column_factor(const struct run *run, enum tracking_column_id column);
