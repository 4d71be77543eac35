/* The program's side of spans: what libwattle, the NVTX and the ITT capture write with. Only libc; linked into the measured
 * program, so: no thread, no lock that a signal handler could wait for, no descriptor kept open, no malloc, no output, and no
 * symbol seen from outside (hidden visibility; each library has a copy of its own).
 *
 * Codes as wattle.h tells them; 0 when nothing is recorded. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SPAN_OFF = 0 };
extern _Atomic int span_writer_state; // the one load of a call without a recorder: SPAN_OFF, else the session's number

// Looks at WATTLE_DISABLE, WATTLE_RING and WATTLE_SPANS; idempotent; called by each library's constructor.
void span_writer_init(void);
// A recorder that this process itself started: `ring` as in WATTLE_RING. -EINVAL.
int span_writer_connect(const char *ring);
// No more spans there; what is open stays open for the recorder to close.
void span_writer_disconnect(void);

// Also looks whether the recorder is still there, once in a thread.
bool span_writer_is_recording(void);

static inline bool span_writer_is_on(void)
{
	return atomic_load_explicit(&span_writer_state, memory_order_relaxed) != SPAN_OFF;
}

// category NULL: none. *ret_depth (may be NULL): how many spans were open before, as span_leave wants it.
int span_begin(const char *name, const char *category, uint32_t *ret_depth);
int span_end(void);
// Ends the span that has n_inner open ones inside it; these go on (NVTX: the stacks of two domains may cross).
int span_end_below(uint32_t n_inner);
int span_leave(uint32_t depth);
uint32_t span_depth(void); // open in this thread, lost ones included
int span_range_begin(const char *name, const char *category, uint64_t *ret_range);
int span_range_end(uint64_t range);
int span_mark(const char *name, const char *category);
int span_metric(const char *name, double value);
