/* A search for the best limit while it goes on: the caller's steps, the limits, the energy that was measured. */
#pragma once

#include "cap/tune/steady.h"
#include "cap/tune/tune.h"
#include "lib/cap_meter.h"
#include "lib/cap_session.h"
#include "wattle.h"

#include <sys/types.h>

enum { SEARCH_LIMITS_MOST = 64 };

struct cap_search {
	struct cap_session *session; // to be entered for every touch of a device
	struct cap_device **devices; // owned array
	double *before;              // owned: of each device the value of a lease that this process had; NaN: none
	size_t n_devices, n_held;    // held: the first so many
	enum cap_what what;
	struct wattle_cap_tune_options options; // with all defaults filled in
	int (*step)(void *data);
	void *data;
	struct cap_meter *meter;
	struct tuner *tuner;
	double limits[SEARCH_LIMITS_MOST]; // descending
	size_t n_limits, limit;            // limit: in force; SIZE_MAX: none yet
	pid_t owner;
	int64_t start_ns, set_ns, step_ns; // set: of the limit; step: how long the last one took
	struct tune_steady steady;         // how quickly the devices follow their limits
	uint64_t n_steps;
	double measured_s; // of all windows
	int n_unknown;     // windows in a row whose energy was not to be had
	int ended_by;      // what step or progress returned, if that was neither 0 nor WATTLE_CAP_NO_MORE
	bool no_more;
};

// Runs until enough is known or the work is at its end. 0, or negative errno; ended_by is set where the caller wanted it.
int cap_search_run(struct cap_search *search, struct wattle_error *reterr);
// Of wattle_cap_tune's ret: -ENODATA, -ENOMEM.
int cap_search_result(const struct cap_search *search, double previous, struct wattle_cap_tune_result *ret_result,
	struct wattle_error *reterr);
