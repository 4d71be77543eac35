/* A span file (WATTLE_SPANS) as a run that has spans, metrics and marks only: no sample, no device. */
#pragma once

#include "base/error.h"
#include "span/reader/reader.h"
#include "store/run.h"

/* Several processes may have written to it one after the other, and the last block of each may be torn: what can be read is
 * read. Facts: schema "wattle-spans"; one segment from the first to the last instant; anchor_mono_ns and anchor_wall_ns as the
 * file has them. -ENOENT, -EINVAL (not a span file), -ENOTSUP (of another version), -ENOMEM with a sentence. *ret_run is
 * released by run_finish. */
int span_file_load(const char *path, struct run *ret_run, struct wattle_error *reterr);
