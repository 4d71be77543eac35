/* Steps of a program, read out of a run file while a recorder writes it: calls of one code block as they end, or reports of
 * one metric. Each look tells what was stored since the one before, also out of the spool beside the file. */
#pragma once

#include "base/error.h"
#include "store/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_step {
	int64_t t_ns; // when the block ended, when the metric was reported
	double value; // of the metric; 1 for a block
};

struct live {
	const char *path, *name; // borrowed
	bool is_metric;
	int64_t segment; // the one that is read; 0: none so far
	int64_t last_id; // of table span, whatever its name
	int64_t next_id; // of table span: lower ones are known, or of an earlier segment …
	int64_t *done;   // owned: … as are these above it, ascending
	size_t n_done, done_room;
	int64_t last_row; // of table user_metric
	int64_t spool_at, shift_ns;
	int64_t newest_ns, known_ns; // told so far; of it, in earlier segments, whose spools have become rows meanwhile
	uint32_t spool_name;         // SPOOL_NAMES: the name did not come yet
	struct live_step *
		steps; // owned: all that was found and not yet forgotten, in order of time, on the clock of this machine
	size_t n_steps, steps_room;
	int64_t stored_ns; // all that happened up to then has been told; VALUE_MISSING: nothing so far
	bool is_over;      // the spool becomes rows: those were told before
};

// is_metric: reports of a metric of that name, else calls of a code block. Of a file's earlier segments nothing is told.
void live_init(struct live *live, const char *path, const char *name, bool is_metric);
void live_finish(struct live *live);
// -ENOENT: there is no file yet; -EBUSY: look again; and what else keeps it from being read, with a sentence.
int live_look(struct live *live, struct wattle_error *reterr);
void live_forget(struct live *live, int64_t before_ns); // steps before that time
// The names that there are so far, "a, b, c", those called most first; "" for none.
void live_names(const char *path, bool of_metrics, char *out, size_t size);
