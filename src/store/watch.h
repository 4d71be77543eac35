/* A run file that grows, looked at again and again: how far it has come, and the spans that run now. What is looked at is the
 * last segment; times are on the clock of this machine. */
#pragma once

#include "base/error.h"
#include "store/follow.h"

#include <stdbool.h>
#include <stdint.h>

enum { WATCH_NAME_SIZE = 256, WATCH_SPANS_MOST = 4096 };

struct watch_span {
	int64_t id, parent; // parent VALUE_MISSING: none
	int64_t begin_ns;
	int64_t pid, tid;
	char name[WATCH_NAME_SIZE]; // cut where it is longer, not inside a character
};

struct watch {
	const char *path; // borrowed
	struct follow_segment segment;
	int64_t stored_ns;        // its last sample; VALUE_MISSING: none yet
	struct watch_span *spans; // owned, by id; running at that time, as far as is stored
	size_t n_spans, room;
	int64_t more; // that run too, for which there is no room: begun after all of these
	int64_t last_id; // up to here none is missing from spans
	int64_t spool_at;
};

void watch_init(struct watch *watch, const char *path);
void watch_finish(struct watch *watch);
// -ENOENT, -EINVAL …: what keeps it from being read, with a sentence; -EBUSY: look again.
int watch_look(struct watch *watch, struct wattle_error *reterr);
/* For those who work through samples in parts: the time of the n-th sample after t_ns, or of the last one there is, in times of
 * the file; t_ns itself where none follows. */
int64_t watch_nth_sample(const struct watch *watch, int64_t t_ns, int64_t n);
