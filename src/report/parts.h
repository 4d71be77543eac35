/* Pieces that the JSON report and the text report are made of. */
#pragma once

#include "analysis/findings.h"
#include "base/buf.h"
#include "base/jsonw.h"

#include <stdbool.h>

// The segment that the report speaks of where there can be only one answer: the last. NULL: the run has none.
const struct run_segment *report_segment(const struct run *run);

// argv of a segment as a person would type it (into an empty buffer).
void command_text(struct buf *out, const struct run_segment *segment);
// The same of words that were not stored; the caller frees it. NULL: no memory.
char *command_line_text(const char *const *argv);

// RFC 3339 with milliseconds and the local offset: "2026-01-31T12:00:00.123+01:00".
void rfc3339(struct buf *out, int64_t wall_ns);
// "2026-01-31 12:00:00 +01:00": seconds do for people.
void start_time_text(struct buf *out, int64_t wall_ns);

// As text: what each block took, and per unit of work.
void blocks_text(const struct findings *findings, struct buf *out, bool colour);
// Factor of a column: bytes to the unit asked for.
double column_factor(const struct run *run, enum tracking_column_id column);
