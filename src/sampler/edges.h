/* When does the hardware update its counter? Watches the readings of one counter and tells how long it is from one update
 * to the next, as median and spread. Pure: no clock, no file.
 *
 * A change was made at some instant between the reading that still showed the old value and the one that showed the new.
 * Only changes that are pinned down to a small part of the time between them tell a period, so readings that are far
 * apart (the normal ticks) teach nothing and harm nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EDGE_INTERVALS = 15, EDGE_INTERVALS_WANTED = 3 };

struct edge_watch {
	bool primed;
	uint64_t last_raw;
	int64_t last_look_ns;   // of the last reading
	int64_t widest_look_ns; // largest distance of readings since the last change
	int64_t last_edge_ns;   // middle between the readings around the last change; VALUE_MISSING: none yet
	int64_t last_edge_width_ns;
	int64_t last_change_ns; // reading that showed the last change
	size_t n_fast;          // changes in a row that came too fast for these readings to be told apart …
	int64_t fast_ns;        // … and the longest time between two of them
	uint64_t smallest_step; // least growth at a change; 0 before the first
	int64_t intervals_ns[EDGE_INTERVALS]; // the last ones, a ring
	size_t n_intervals;                   // ever seen
	size_t n_edges;                       // changes ever seen
};

void edge_watch_init(struct edge_watch *watch);
// One reading; true if the value is another than at the last one.
bool edge_watch_feed(struct edge_watch *watch, int64_t t_ns, uint64_t raw);
/* The mean of the last intervals without those far from the middle, and half of their spread; or, of a counter that is too
 * fast for the readings, the longest time that it was seen to rest, which is more than the period. False, and untouched,
 * while neither is known. */
bool edge_watch_period(const struct edge_watch *watch, int64_t *ret_period_ns, int64_t *ret_jitter_ns);
