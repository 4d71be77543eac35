/* A thread's way out: a ring that the recorder reads, or a block of a span file. Called with signals blocked. */
#pragma once

#include "span/writer/thread.h"

#include <errno.h>

// Where the sink has its counters.
struct span_counters {
	_Atomic uint64_t *head, *lost, *unwound;
};

// Records go to `sink` from now on; what was counted while there was none is told there. The old one is unmapped.
void span_sink_attach(struct span_thread *thread, const struct span_sink *sink, struct span_record *records,
	uint64_t mask, struct span_counters counters);
// All is lost and counted.
void span_sink_detach(struct span_thread *thread);

// The kernel keeps rings and states from forked children, as threads found when they asked for it.
void span_sinks_wipe(bool is_wiped);
bool span_sinks_are_wiped(void);

// A new ring or block, unless that was tried a moment ago.
bool span_sink_renew(struct span_thread *thread);
int span_ring_open(struct span_thread *thread, const struct ring_address *address);
int span_block_claim(struct span_thread *thread);

// Worth trying again: the machine or the recorder is short of something. Else it will be the same for ever.
static inline bool span_errno_passes(int r)
{
	switch (r) {
	case -EAGAIN: // the recorder has many waiting
	case -EINTR:
	case -EMFILE:
	case -ENFILE:
	case -ENOBUFS:
	case -ENOMEM:
	case -ETOOMANYREFS:
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG: // RLIMIT_FSIZE, which may be raised
		return true;
	default:
		return false;
	}
}
