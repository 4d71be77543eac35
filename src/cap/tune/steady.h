/* Whether a device has reached the limit that was set: its power is steady, and not above the limit any more. Drivers take from
 * some 10 ms to more than a second until a limit acts, and power is steady before that, too. Pure, as the rest of the search. */
#pragma once

#include <stdbool.h>

struct tune_steady {
	double delay_s; // longest time after which a limit was seen to act, in this search
	double least_w; // of a device whose power no limit brought down; 0: there was none
	double before_w,
		above_s; // of the limit that was set last: the stretch before, and the end of the last one above it
};

// A limit that does not act by then does not bring power down.
#define TUNE_SLOWEST_S 3.0

// The same limit for each of several devices. `limit_w` NaN: of clocks, which do not say what power may be.
struct tune_stretch_power {
	double limit_w;
	double sum_w, most_w; // of all devices, and of the one that drew most
	double until_s;       // its end, since the limit was set
};

void tune_steady_begin(struct tune_steady *steady); // another limit was set
// True: the limit acts, and power agrees with that of the stretch before within `tolerance` of itself and half a watt.
bool tune_steady_add(struct tune_steady *steady, const struct tune_stretch_power *stretch, double tolerance);
// Whether one device draws more than the limit lets it.
bool tune_steady_is_above(const struct tune_steady *steady, double limit_w, double w);
void tune_steady_learn(struct tune_steady *steady, double delay_s); // a limit was seen to act after so long
