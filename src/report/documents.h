/* Output of `wattle blocks`: for a run, and for gpu_tracker's own files in their units. */
#pragma once

#include "analysis/compare/compare.h"
#include "analysis/compare/tracking_blocks.h"
#include "analysis/findings.h"
#include "base/buf.h"
#include "model/model.h"

#include <stdbool.h>

struct object_type; // base/fields.h

// {"overall", "static_data", "code_block_results", "energy"}; "energy" only if the run could measure any.
void blocks_document(const struct findings *findings, struct buf *out);
// The same without energy.
extern const struct object_type tracking_type;       // struct tracking_findings
extern const struct object_type tracking_block_type; // struct tracking_block, a member
void tracking_blocks_json(const struct tracking_findings *findings, struct buf *out);
void tracking_blocks_text(const struct tracking_findings *findings, struct buf *out, bool colour);

/* Output of `wattle compare`. Pure: writes to a buffer. */

extern const struct object_type compare_type;                            // struct comparison
void compare_json(const struct comparison *comparison, struct buf *out); // keys: docs/compare.md
// statistic: min, max, mean or std; appears in titles. Without `all`: the whole runs, and the blocks whose energy differs.
void compare_text(const struct comparison *comparison, const char *statistic, bool all, struct buf *out, bool colour);
void compare_signed_percent(struct buf *out, double percent, int decimals); // "−6.6 %"
void compare_percent(struct buf *out, struct compare_change change);        // "−6.6 % ± 0.2"

/* Output of `wattle model`. Pure: writes to a buffer. */

extern const struct object_type model_type;                            // struct model_figures
void model_json(const struct model_figures *figures, struct buf *out); // docs/onnx.md lists all keys
void model_text(const struct model_figures *figures, const char *file, struct buf *out, bool colour);

/* Output of `wattle functions`. Pure: writes to a buffer. `top`: at most so many functions; names: of the functions by number. */

struct arena;
extern const struct object_type functions_type; // struct functions_finding
void functions_json(const struct functions_finding *functions, size_t top, struct buf *out);
void functions_text(const struct functions_finding *functions, size_t top, bool by_time, struct buf *out, bool colour);
void functions_tree_text(const struct functions_finding *functions, const char *const *names, bool by_time, struct buf *out,
	bool colour);
// "caller;function weight" on each line, as for flame graphs.
void functions_folded(const struct functions_finding *functions, const char *const *names, bool by_time, struct buf *out);
// pprof's profile.proto, without compression; -ENOMEM.
int functions_pprof(const struct functions_finding *functions, const struct function_names *names, struct arena *arena,
	struct buf *out);
