/* A run in progress for `wattle top RUN`, read from its run file. */
#pragma once

#include "base/error.h"
#include "live/session.h"

struct top_run;

// -ENOENT, -EINVAL: not a run file; -ESRCH: the run has ended. With a message. `path` is borrowed until close.
int top_run_open(const char *path, struct top_run **ret_run, struct wattle_error *reterr);
// Whether the process with the run's pid is still the run's process: it existed when the run began. -ESRCH with a message.
int top_run_check(const struct top_run *run, const struct monitor_sample *now, struct wattle_error *reterr);
void top_run_close(struct top_run *run); // NULL is allowed, also below
// Updates the data. Values that cannot be read stay as they were. A long history is processed in several calls, or, with
// to_the_end, in one.
void top_run_update(struct top_run *run, int64_t now_ns, bool to_the_end);
const struct live_run *top_run_view(const struct top_run *run);
pid_t top_run_pid(const struct top_run *run);
