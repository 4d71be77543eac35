/* Counters: extension to 64 bits, and detection of their updates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Extends a hardware energy counter to 64 bits and classifies each value. Pure: no clock, no file.
 *
 * A raw value that decreased is a wrap if the implied energy is plausible for the elapsed time; otherwise it is a reset
 * (driver reload, suspend, re-registered zone). After a reset, counting continues from the new value, and the energy in
 * between is unknown; it is never invented. An increase that no power explains is treated likewise. A step back of a few
 * counts (an older value read after a newer one) is neither: the counter waits for the next higher value. Raw values that
 * could not be read, or are outside the range, form a gap. The next good value bridges it if that is unambiguous. */

struct counter {
	uint64_t range;     // raw values run from 0 to range, then restart at 0; 0: 64 bits
	double max_power_w; // maximum of the domain, averaged over a second; 0: unknown, any value is plausible
	uint64_t last_raw;
	int64_t last_t_ns;      // time of the last good value
	int64_t last_change_ns; // time of the last good value that differed from its predecessor
	uint64_t total;         // extended value; 0 at the first reading
	double mean_power_w;    // mean over recent differences, used to count unseen wraps
	double mean_span_s;     // duration covered by that mean
	bool has_value;         // last_raw is valid
	bool in_gap;
	uint32_t wraps, resets, gaps, ambiguous;
};

enum counter_event {
	COUNTER_OK,
	COUNTER_FIRST,     // no earlier value to compare with
	COUNTER_WRAP,      // one wrap
	COUNTER_WRAPS,     // unseen wraps in addition to the visible difference: of the numbers possible in that time, the most
			   // likely one given the earlier power (`ambiguous` counts these events)
	COUNTER_RESET,     // decreased without a wrap: the energy between the two values is unknown
	COUNTER_STALLED,   // unchanged (normal between two updates of a slow counter)
	COUNTER_GAP,       // this value could not be read
	COUNTER_GAP_ENDED, // first good value after a gap; a single wrap in between is in `wraps`
};

void counter_init(struct counter *counter, uint64_t range, double max_power_w);
// raw in µJ or VALUE_MISSING; suspended: the machine slept since the last value (a decrease is then a reset). Afterwards
// counter->total has the extended value (µJ); a GAP leaves it unchanged.
enum counter_event counter_feed(struct counter *counter, int64_t t_ns, int64_t raw_uj, bool suspended);

/* Estimates the update period of a counter from its readings, as median and spread. Pure: no clock, no file.
 *
 * An update happened at some instant between the reading with the old value and the reading with the new one. Only updates
 * that are located within a small part of the period determine the period. Readings that are far apart (the normal ticks)
 * do not affect the result. */

enum { UPDATE_INTERVALS = 15, UPDATE_INTERVALS_NEEDED = 3 };

struct update_detector {
	bool has_value;
	uint64_t last_raw;
	int64_t last_poll_ns;   // time of the last reading
	int64_t widest_poll_ns; // longest time between readings since the last change
	int64_t last_edge_ns;   // midpoint of the readings around the last change; VALUE_MISSING: none yet
	int64_t last_edge_width_ns;
	int64_t last_change_ns; // time of the reading that showed the last change
	size_t n_fast;          // consecutive changes too fast to be separated by these readings …
	int64_t fast_ns;        // … and the longest time between two of them
	uint64_t smallest_step; // smallest increase at a change; 0 before the first
	int64_t intervals_ns[UPDATE_INTERVALS]; // latest intervals, a ring buffer
	size_t n_intervals;                   // total number of intervals
	size_t n_edges;                       // total number of changes
};

void update_detector_init(struct update_detector *watch);
// Takes one reading; returns true if the value differs from the last one.
bool update_detector_feed(struct update_detector *watch, int64_t t_ns, uint64_t raw);
/* Returns the mean of the latest intervals, without outliers, and half their spread. For a counter too fast for the readings
 * it returns the longest observed time without a change, which exceeds the period. Returns false, leaving the results
 * unchanged, while neither is known. */
bool update_detector_period(const struct update_detector *watch, int64_t *ret_period_ns, int64_t *ret_jitter_ns);
