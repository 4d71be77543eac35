/* The small tables of a run file as JSON, for wattle_put (calls.h): facts, devices, segments, what columns mean, processes. */
#pragma once

#include "base/buf.h"
#include "store/postgres/source.h"

/* What can change as a run goes on: "run", "device", "segment", and "recording" as far as the file says it itself. The file is open.
 * SQLite's result code. */
int small_facts(struct source *source, struct buf *out);
int small_metrics(struct source *source, struct buf *out); // "metric": what the columns of this file mean; and what time it is here

/* "process", from a key on: so many at a time. *at is moved on, and is_more says whether there are others. */
struct small_process {
	int64_t pid, start_ns; // the last one that was written; pid VALUE_MISSING: none so far
	bool is_more;
};
int small_processes(struct source *source, struct small_process *at, struct buf *out);
