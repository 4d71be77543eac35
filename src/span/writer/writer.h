/* Span writer in the measured program, used by libwattle and the NVTX and ITT captures. It needs only libc. As it runs
 * in the measured program, it has no thread, no lock that a signal handler could wait for, no open descriptor, no
 * malloc, no output, and no exported symbol (hidden visibility; each library has its own copy).
 *
 * Return codes as in wattle.h; 0 if nothing is recorded. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SPAN_OFF = 0 };
extern _Atomic int span_writer_state; // the only load of a call without a recorder: SPAN_OFF, or the session's number

// Reads WATTLE_DISABLE, WATTLE_RING and WATTLE_SPANS; idempotent; called by the constructor of each library.
void span_writer_init(void);
// Connects to a recorder started by this process: `ring` as in WATTLE_RING. -EINVAL.
int span_writer_connect(const char *ring);
// Stops writing to the recorder, which closes the open spans.
void span_writer_disconnect(void);

// Also checks once per thread whether the recorder still exists.
bool span_writer_is_recording(void);

static inline bool span_writer_is_on(void)
{
	return atomic_load_explicit(&span_writer_state, memory_order_relaxed) != SPAN_OFF;
}

// category NULL: none. *ret_depth (may be NULL): number of spans open before, as expected by span_leave.
int span_begin(const char *name, const char *category, uint32_t *ret_depth);
int span_end(void);
// Ends the span that has n_inner open ones inside it; these continue (the stacks of two NVTX domains may interleave).
int span_end_below(uint32_t n_inner);
int span_leave(uint32_t depth);
uint32_t span_depth(void); // open spans in this thread, including lost ones
int span_range_begin(const char *name, const char *category, uint64_t *ret_range);
int span_range_end(uint64_t range);
int span_mark(const char *name, const char *category);
int span_metric(const char *name, double value);
