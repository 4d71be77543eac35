/* Power and clock limits set by this process. A lease belongs to the process and calls only name devices, so all
 * threads share one table. This is the library's only global state.
 *
 * The first call opens it and it stays open, because starting NVML takes up to seconds. A forked child starts with an
 * empty table. */
#pragma once

#include "base/error.h"
#include "cap/device.h"
#include "cap/lease.h"
#include "cap/tune/meter.h"
#include "cap/tune/tune.h"
#include "wattle.h"

#include <limits.h>
#include <pthread.h>
#include <sys/types.h>

struct cap_entry {             // state of one device
	struct cap_hold *hold; // owned; NULL: this process has no lease on it
	double value;          // value of the lease, W or MHz; NaN: not set yet
	bool is_searched;      // by the thread `searcher`; until the search ends only that thread uses `hold` and these fields
	pthread_t searcher;
};

struct cap_session {
	struct wattle_env env;
	struct cap_devices devices;
	struct cap_entry *entries; // owned array, one entry per device, in the order of `devices`
	struct cap_holder holder;
	char program[PATH_MAX];
	const char *argv[2];
	struct cap_guard *guard; // shared by all leases
	int program_code;        // 0; negative errno: the wattle program was not found, so there is no guard
	char recovered[600]; // limits of dead programs restored at open, to be reported by the first call; "" none
};

// Opens the session if needed and locks it against calls from other threads. On failure it is not locked.
int cap_session_enter(struct cap_session **ret_session, struct wattle_error *reterr);
void cap_session_leave(void);

struct cap_entry *cap_session_entry(struct cap_session *session, const struct cap_device *device);
// Sets device->hold to the process's existing hold or to a new one. -EBUSY: another thread runs a search on the device.
// Other errors as of cap_hold_open.
int cap_session_hold(struct cap_session *session, struct cap_device *device, struct wattle_error *reterr);
// Ends the process's lease on the device.
int cap_session_release(struct cap_session *session, struct cap_device *device, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr);

/* Settings of the Python extension, made before its first call: path of the package's wattle program (NULL: default
 * search) and the name recorded as owner of leases. Both are copied. */
void cap_session_configure(const char *program, const char *name);

/* Messages of wattle_cap calls, kept per thread. */

// Starts a call: clears the thread's error and notices. Returns the error to fill in; NULL: out of memory.
struct wattle_error *cap_message_begin(void);
struct wattle_error *cap_message_error(void); // error of the current call
// Ends the call and returns `code`. A negative code gets a default message if none was set.
int cap_message_end(int code);
void cap_message_notice(const char *text); // appended to earlier notices; "" is ignored

/* Device selection by the caller's text: "gpu-0", "GPU-8f2c", "gpu-0,package-1", "gpus". */

// ret_devices has room for all devices of the session. Each device is listed once, in the order of the text. -EINVAL or
// -ENODEV with a message.
int cap_choose(struct cap_session *session, const char *text, enum cap_kind what, struct cap_device **ret_devices,
	size_t *ret_n, struct wattle_error *reterr);

// As cap_choose, but returns comma-separated names, which the Python extension stores. With WATTLE_DISABLE=1 returns
// the text unchanged.
int cap_choose_names(const char *text, enum cap_kind what, char *ret_names, size_t size, struct wattle_error *reterr);

/* Energy of the searched devices between two instants. A separate thread reads the counters often enough to catch every
 * update while the program's thread works. */

struct cap_meter;

/* -ENOTSUP with a message: a device has no energy counter, or only a model estimate. `env` must outlive the meter. */
int cap_meter_open(const struct wattle_env *env, struct cap_device *const *devices, size_t n,
	struct cap_meter **ret_meter, struct wattle_error *reterr);
void cap_meter_close(struct cap_meter *meter); // NULL allowed

// Stores the current instant as mark 0 to TRACK_MARKS - 1, replacing the previous one. Returns it (CLOCK_MONOTONIC,
// ns).
int64_t cap_meter_mark(struct cap_meter *meter, size_t mark);
// Energy between two marks. False: one of them is not known yet.
bool cap_meter_between(struct cap_meter *meter, size_t from, size_t to, struct tune_span *ret_span);
// Number of updates of the slowest counter so far.
uint64_t cap_meter_updates(struct cap_meter *meter);
bool cap_meter_is_lost(struct cap_meter *meter); // a counter was reset: the energy stays unknown

/* State of a running search for the best limit: the caller's steps, the candidate limits and the measured energy. */

enum { SEARCH_LIMITS_MAX = 64 };

struct cap_search {
	struct cap_session *session; // must be entered for every device access
	struct cap_device **devices; // owned array
	double *before;              // owned array: previous lease value of each device; NaN: none
	size_t n_devices, n_held;    // held: leading devices that have a hold
	enum cap_kind what;
	struct wattle_cap_tune_options options; // with defaults filled in
	int (*step)(void *data);
	void *data;
	struct cap_meter *meter;
	struct tuner *tuner;
	double limits[SEARCH_LIMITS_MAX];  // descending
	size_t n_limits, limit;            // limit: index of the limit in force; SIZE_MAX: none yet
	pid_t owner;
	int64_t start_ns, set_ns, step_ns; // set: when the limit was set; step: duration of the last step
	struct tune_steady steady;         // response time of the devices to a new limit
	uint64_t n_steps;
	double measured_s; // total duration of all windows
	int n_unknown;     // consecutive windows with unknown energy
	int ended_by;      // return value of step or progress, unless 0 or WATTLE_CAP_NO_MORE
	bool no_more;
};

// Runs until the result is precise enough or the caller has no more steps. 0 or negative errno; ended_by is set if the
// caller ended the search.
int cap_search_run(struct cap_search *search, struct wattle_error *reterr);
// Fills in the result of wattle_cap_tune. -ENODATA, -ENOMEM.
int cap_search_result(const struct cap_search *search, double previous, struct wattle_cap_tune_result *ret_result,
	struct wattle_error *reterr);
