/* Counters: extended to 64 bits, and when they are updated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Extends a hardware energy counter to 64 bits and says what happened to it. Pure: no clock, no file.
 *
 * A raw value that went down is a wrap if the energy that a wrap implies is plausible for the time that has passed,
 * else a reset (driver reload, suspend, re-registered zone): after a reset counting goes on from the new value and
 * the energy in between is unknown, never invented; so is a jump upwards that no power explains. A step back of a few
 * counts (an older value seen after a newer one) is neither: the counter waits for the next higher value. Raw values
 * that could not be read, or lie outside of the range, make a gap, bridged by the next good value as long as that is
 * unambiguous. */

struct counter {
	uint64_t range;     // raw values run from 0 to range, then 0 again; 0: 64 bits
	double max_power_w; // what the domain can't exceed, averaged over a second; 0: unknown, nothing is implausible
	uint64_t last_raw;
	int64_t last_t_ns;      // of the last good value
	int64_t last_change_ns; // of the last good value that was another one
	uint64_t total;         // extended, starts at 0 with the first value
	double mean_power_w;    // over the last differences, for the hint about several wraps
	double mean_span_s;     // how much time is in that mean
	bool primed;            // last_raw is valid
	bool in_gap;
	uint32_t wraps, resets, gaps, ambiguous;
};

enum counter_event {
	COUNTER_OK,
	COUNTER_FIRST,     // nothing to compare with yet
	COUNTER_WRAP,      // one wrap
	COUNTER_WRAPS,     // wrapped unseen, once or more, besides what the values show: the likeliest number by the
			   // power before, out of those that there was time for (`ambiguous` counts such times)
	COUNTER_RESET,     // went back and it was no wrap: energy between the two values is unknown
	COUNTER_STALLED,   // unchanged (normal between two updates of a slow counter)
	COUNTER_GAP,       // this value could not be read
	COUNTER_GAP_ENDED, // the first good one after that; a single wrap in between is in `wraps`
};

void counter_init(struct counter *counter, uint64_t range, double max_power_w);
// raw in µJ or VALUE_MISSING; suspended: the machine slept since the last value (a decrease is then a reset).
// The extended value is in counter->total (µJ) afterwards, unchanged for GAP.
enum counter_event counter_feed(struct counter *counter, int64_t t_ns, int64_t raw_uj, bool suspended);

/* When does the hardware update its counter? Watches the readings of one counter and tells how long it is from one update
 * to the next, as median and spread. Pure: no clock, no file.
 *
 * A change was made at some instant between the reading that still showed the old value and the one that showed the new.
 * Only changes that are pinned down to a small part of the time between them tell a period, so readings that are far
 * apart (the normal ticks) teach nothing and harm nothing. */

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
