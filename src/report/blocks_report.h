/* What `wattle blocks` prints: of a run, and of gpu_tracker's own files in its units. */
#pragma once

#include "analysis/compare/tracking_blocks.h"
#include "analysis/findings.h"
#include "base/buf.h"

#include <stdbool.h>

struct object_type; // base/fields.h

// {"overall", "static_data", "code_block_results", "energy"}; energy only of runs that could have measured any.
void blocks_document(const struct findings *findings, struct buf *out);
// The same without energy.
extern const struct object_type tracking_type; // struct tracking_findings
void tracking_blocks_json(const struct tracking_findings *findings, struct buf *out);
void tracking_blocks_text(const struct tracking_findings *findings, struct buf *out, bool colour);
