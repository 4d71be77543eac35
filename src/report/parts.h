/* Pieces that the JSON report and the text report are made of. */
#pragma once

#include "analysis/findings.h"
#include "base/buf.h"
#include "base/jsonw.h"

#include <stdbool.h>

// The segment that the report speaks of where there can be only one answer: the last. NULL: the run has none.
const struct run_segment *report_segment(const struct run *run);

// argv of a segment, stored as a JSON array: again as that, or as a person would type it (into an
// empty buffer).
void command_json(struct jsonw *j, const struct run_segment *segment);
void command_text(struct buf *out, const struct run_segment *segment);
// The same of words that were not stored; the caller frees it. NULL: no memory.
char *command_line_text(const char *const *argv);

// RFC 3339 with milliseconds and the local offset: "2026-01-31T12:00:00.123+01:00".
void rfc3339(struct buf *out, int64_t wall_ns);
// "2026-01-31 12:00:00 +01:00": seconds do for people.
void start_time_text(struct buf *out, int64_t wall_ns);

/* Keys and values of report_json, for whoever writes the same of several runs. `node`: a key before the others; NULL: none. Those that say
 * so write their key as well. */
void labels_json(struct jsonw *j, const struct run *run); // key "labels"
void run_figures_json(struct jsonw *j, const struct findings *f); // keys of "run": its length, samples, host, labels
void ledger_json(struct jsonw *j, const struct ledger *ledger);
void energy_sums_json(struct jsonw *j, const struct findings *f); // keys of "energy", all but "domains"
void domain_json(struct jsonw *j, const struct domain_finding *domain, const char *node);
void cpu_json(struct jsonw *j, const struct findings *f);    // key "cpu"
void memory_json(struct jsonw *j, const struct findings *f); // key "memory"
void gpu_json(struct jsonw *j, const struct gpu_finding *gpu, const char *node);
void metrics_json(struct jsonw *j, const struct findings *f); // key "metrics"
void self_json(struct jsonw *j, const struct findings *f);    // key "self"
void events_json(struct jsonw *j, const struct run *run);     // key "events"

// gpu_tracker's ResourceUsage in the units that were asked for.
void usage_json(struct jsonw *j, const struct run *run, const struct resource_usage *usage);
// {"min", "max", "mean", "std", "total"}
void value_stats_json(struct jsonw *j, const struct value_stats *stats);
// The array of code blocks, as `wattle blocks` prints it.
void block_times_json(struct jsonw *j, const struct block_finding *block); // keys of a block: name, calls, times
// Keys of its "energy", all but "domains".
void block_energy_json(struct jsonw *j, const struct findings *findings, const struct block_finding *block);
void block_units_json(struct jsonw *j, const struct block_finding *block);                        // key "units"
void block_usage_json(struct jsonw *j, const struct run *run, const struct block_finding *block); // with its key
void blocks_json(struct jsonw *j, const struct findings *findings);
// As text: what each block took, and per unit of work.
void blocks_text(const struct findings *findings, struct buf *out, bool colour);
// Factor of a column: bytes to the unit asked for.
double column_factor(const struct run *run, enum column column);
