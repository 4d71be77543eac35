/* The intervals over which a run is divided among programs.
 *
 * /proc counts CPU time in ticks of 10 ms. Over one sample of a fast recording that is all noise, so neighbouring
 * samples are merged until a window is about 100 ms long. */
#pragma once

#include "base/arena.h"
#include "store/run.h"

struct window {
	uint32_t segment;
	uint32_t first, last;     // the run's samples at its ends; equal if there are no two
	int64_t begin_ns, end_ns; // what its figures were measured between; the first sample may be taken just before
				  // the target starts, the last one just after it has ended
	int64_t from_ns, to_ns;   // what it speaks for: the outer windows of a segment reach to the segment's ends
	double target_ns, wattle_ns, busy_ns, idle_ns; // CPU time in it, busy includes the other two; NaN unknown
};

struct windows {
	struct window *at; // ascending; each segment has at least one
	size_t n;
	double most_cores; // that the target had at once, as far as windows show it; at least 1
};

enum { WINDOW_MIN_MS = 95 }; // 100 ms but for the jitter of the sampler's ticks

int windows_make(const struct run *run, struct arena *arena, struct windows *ret_windows); // -ENOMEM
// The window that speaks for an instant. There must be one at least.
const struct window *windows_find(const struct windows *windows, int64_t t_ns);
