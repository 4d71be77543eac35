/* The CSV that OmegaWatt's reader writes, line by line; knows text, not files.
 *
 *	#timestamp,#frame_is_ok,#U1,#U2,#U3,#current1,#activepow1,#current2,#activepow2,…
 *	1671527189.304214184,false,,,,,,
 *	1671527189.314471465,true,232.3,0.0,0.0,0.1,20.9,0.0,0.0
 *
 * Seconds since the Unix epoch, volts, amperes, watts; channel N is the machine plugged into socket N. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WALL_COLUMNS_MAX = 128 };

struct wall_columns {
	int timestamp, frame_is_ok;
	bool is_power[WALL_COLUMNS_MAX]; // its watts count
	size_t n_power;
};

struct wall_frame {
	int64_t stamp_ns; // since the epoch of the meter's clock
	int64_t power_mw; // of all channels that count, together
};

// Whether the line is the header; channels: a bit for each channel that counts (bit 1: channel 1), 0: all. Columns of
// channels that are not there leave n_power smaller.
bool wall_csv_header(const char *line, uint64_t channels, struct wall_columns *ret_columns);
// False for a frame that is not ok, is cut, or holds no number where one belongs.
bool wall_csv_frame(const char *line, const struct wall_columns *columns, struct wall_frame *ret_frame);
