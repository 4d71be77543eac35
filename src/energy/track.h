/* The energy of one device from live readings, for `top`, `serve`, the progress line, the library's meter and the power limit
 * search. The latest readings are kept. The curve used for reports (curve.h) gives energy, power and errors, so that all of
 * them agree. Pure: no clock, no file.
 *
 * Energy is computed between marks. A mark can be set at any instant up to now; its result is kept when its readings are
 * discarded. A reading of the load model is the mean since the previous reading. */
#pragma once

#include "energy/counter.h"
#include "energy/curve.h"
#include "sensor/sensor.h"

enum { TRACK_READINGS = 128, TRACK_MARKS = 4 };

struct energy_amount {              // NaN: unknown
	double j, error_j;          // error: half of a 95 % interval
	double calibration_error_j; // additional error of a GPU sensor's calibration; NaN: not stated
};

struct energy_mark {
	int64_t t_ns;
	int64_t energy_uj; // energy read so far
	uint32_t n_lost;   // see energy_track_losses
	bool is_set, was_readable;
	bool is_kept; // the readings have been discarded: `point` has the result
	struct edge_point point;
};

struct energy_track {
	const struct domain *domain; // borrowed
	const char *source;          // name of its sensor, borrowed
	struct update_period period; // as stated by its sensor; update it when counter observation finds another
	bool is_extended;
	struct counter counter;
	int64_t join_max_ns; // maximum time between joined power readings; power in a longer pause is unknown
	int64_t energy_uj;               // since the start of counting, times the sensor's gain; never decreases
	int64_t added_uj;                // energy added by the last reading
	int64_t last_ns, last_power_mw;  // the last reading; 0: none
	int64_t power_ns;                // time of the last power reading; 0: none
	double power_w, integrated_uj;   // without a counter: last power reading, and the integral of power in the unit
					 // of energy_uj
	int64_t moved_ns;                // time of the last counter update
	int64_t seen_ns, rest_ns;        // time of the reading that showed it; time since the previous such reading
	uint64_t n_updates;              // counter updates since the first reading
	uint32_t n_unread;               // missing readings of the model
	size_t n;
	int64_t t_ns[TRACK_READINGS], uj[TRACK_READINGS], stamp_ns[TRACK_READINGS], power_mw[TRACK_READINGS];
	struct energy_mark marks[TRACK_MARKS];
};

// is_extended: rows have DEVICE_ENERGY, already extended to 64 bits; else DEVICE_ENERGY_RAW.
void energy_track_init(struct energy_track *track, const struct domain *domain, const char *source, bool is_extended);
// Maximum time between power readings that are joined; at least a minute.
void energy_track_set_join(struct energy_track *track, int64_t join_max_ns);
// Adds one reading: the domain's row. suspended: the machine slept since the previous reading.
void energy_track_feed(struct energy_track *track, int64_t t_ns, const int64_t row[DEVICE_COUNT], bool suspended);
// Overwrites the mark's earlier state.
void energy_track_mark(struct energy_track *track, size_t mark, int64_t t_ns);
// Energy between two marks; `to` must not be before `from`.
struct energy_amount energy_track_between(struct energy_track *track, size_t from, size_t to);
// Whether the counter was updated after the mark, so that the energy up to it will hardly change.
bool energy_track_has_passed(const struct energy_track *track, size_t mark);
// Whether some energy since the mark was not read, or the counter can't be read now.
bool energy_track_is_lost(const struct energy_track *track, size_t from);
// Number of energy losses: counter resets, possible unseen wraps, missing model readings.
uint32_t energy_track_losses(const struct energy_track *track);
// Mean power between the latest counter updates, over ten of them if available; 0 if the counter does not change; NaN:
// unknown.
double energy_track_power_w(struct energy_track *track);
