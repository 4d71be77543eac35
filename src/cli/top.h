/* A run in progress, as `wattle top RUN` reads it out of its file. */
#pragma once

#include "base/error.h"
#include "live/session.h"

struct top_run;

// -ENOENT, -EINVAL: no run file; -ESRCH: the run is over. With a sentence. `path` is borrowed until close.
int top_run_open(const char *path, struct top_run **ret_run, struct wattle_error *reterr);
// Whether the process that now has its pid is its own: it was there when the run began. -ESRCH with a sentence.
int top_run_check(const struct top_run *run, const struct now *now, struct wattle_error *reterr);
void top_run_close(struct top_run *run); // NULL allowed, here and below
// What can't be read stays as it was. A long past is taken in over several looks, or at once: `to_the_end`.
void top_run_look(struct top_run *run, int64_t now_ns, bool to_the_end);
const struct live_run *top_run_view(const struct top_run *run);
pid_t top_run_pid(const struct top_run *run);
