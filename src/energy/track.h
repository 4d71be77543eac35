/* The energy of one device from readings as they come: `top`, `serve`, the progress line, the library's meter and the search for a
 * limit. The latest readings are kept, and the curve that reports draw through them (curve.h) gives energy, power and errors,
 * so that all of them agree. Pure: no clock, no file.
 *
 * Energy is asked for between marks. A mark may be set at an instant up to now; what its readings show of it is kept when they
 * go. A reading of the load model is the mean since the reading before. */
#pragma once

#include "energy/counter.h"
#include "energy/curve.h"
#include "sensor/sensor.h"

enum { TRACK_READINGS = 128, TRACK_MARKS = 4 };

struct energy_amount {              // NaN unknown
	double j, error_j;          // error: half of a 95 % interval
	double calibration_error_j; // beside it, of a GPU's sensor; NaN: no statement is known
};

struct energy_mark {
	int64_t t_ns;
	int64_t energy_uj; // read by then
	uint32_t n_lost;   // as energy_track_losses
	bool is_set, was_readable;
	bool is_kept; // the readings around it are gone: `point` is what they showed
	struct edge_point point;
};

struct energy_track {
	const struct domain *domain; // borrowed
	const char *source;          // its sensor's name, borrowed
	struct update_period period; // as its sensor states it; set it anew where a watch of the counter has found another
	bool is_extended;
	struct counter counter;
	int64_t join_most_ns;            // power readings further apart are not joined: nobody knows what was in between
	int64_t energy_uj;               // since counting began, times the sensor's gain; never falls
	int64_t added_uj;                // by the last reading
	int64_t last_ns, last_power_mw;  // the last reading; 0: none
	int64_t power_ns;                // the last one of power; 0: none
	double power_w, integrated_uj;   // where there is no counter: that power, and energy as energy_uj
	int64_t moved_ns;                // when the counter was updated last
	int64_t seen_ns, rest_ns;        // the reading that showed that; how long after the one before that showed an update
	uint64_t n_updates;              // of the counter, seen since the first reading
	uint32_t n_unread;               // readings of the model that are missing
	size_t n;
	int64_t t_ns[TRACK_READINGS], uj[TRACK_READINGS], stamp_ns[TRACK_READINGS], power_mw[TRACK_READINGS];
	struct energy_mark marks[TRACK_MARKS];
};

// is_extended: rows hold DEVICE_ENERGY, extended to 64 bits already; else DEVICE_ENERGY_RAW.
void energy_track_init(struct energy_track *track, const struct domain *domain, const char *source, bool is_extended);
// How far readings of power may be apart to be joined; not less than a minute.
void energy_track_set_join(struct energy_track *track, int64_t join_most_ns);
// One reading: the domain's row. suspended: the machine slept since the reading before.
void energy_track_feed(struct energy_track *track, int64_t t_ns, const int64_t row[DEVICE_COUNT], bool suspended);
// What a mark stood at before is forgotten.
void energy_track_mark(struct energy_track *track, size_t mark, int64_t t_ns);
// Between two marks, of which `to` is not before `from`.
struct energy_amount energy_track_between(struct energy_track *track, size_t from, size_t to);
// The counter was updated after that mark, so that its energy will hardly change any more.
bool energy_track_has_passed(const struct energy_track *track, size_t mark);
// Something of the energy since that mark was not read, or the counter can't be read now.
bool energy_track_is_lost(const struct energy_track *track, size_t from);
// How often energy was lost: the counter was reset, or may have wrapped unseen, or the model could not be read.
uint32_t energy_track_losses(const struct energy_track *track);
// Of a counter between its latest updates, over ten of them where that is to be had; 0 where it stands still; NaN unknown.
double energy_track_power_w(struct energy_track *track);
