/* What this process has limited: one table for all of its threads, because a lease belongs to the process and the calls name
 * devices only. The one state of the library that is not the caller's.
 *
 * Opened by the first call, and kept: to start NVML takes up to seconds. A forked child begins with an empty one. */
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

struct cap_entry {             // of one device
	struct cap_hold *hold; // owned; NULL: this process has no lease on it
	double value;          // W or MHz, of the lease; NaN: none was set yet
	bool is_searched;      // by `searcher`, who alone uses the hold and sets these, until the end of its search
	pthread_t searcher;
};

struct cap_session {
	struct wattle_env env;
	struct cap_devices devices;
	struct cap_entry *entries; // owned: one for each of the devices, in their order
	struct cap_holder holder;
	char program[PATH_MAX];
	const char *argv[2];
	struct cap_guard *guard; // one for all leases
	int program_code;        // 0; negative errno: the program wattle was not found, so there is no guard
	char recovered[600]; // what the opening has put back of dead programs, for the first call to tell; "" nothing
};

// Opens it if need be and locks it, and with it all other threads' calls. On failure it is not locked.
int cap_session_enter(struct cap_session **ret_session, struct wattle_error *reterr);
void cap_session_leave(void);

struct cap_entry *cap_session_entry(struct cap_session *session, const struct cap_device *device);
// A hold for a device: that of the process's lease, or a new one. -EBUSY: another thread is searching on it; as cap_hold_open.
int cap_session_hold(struct cap_session *session, struct cap_device *device, struct wattle_error *reterr);
// Ends the process's lease on it.
int cap_session_release(struct cap_session *session, struct cap_device *device, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr);

/* How the extension for Python introduces itself before its first call: the program wattle of the package (NULL: found as ever),
 * and what owners of leases are called. Copied. */
void cap_session_introduce(const char *program, const char *name);

/* What a wattle_cap call has to say besides its code: the sentences of its thread. */

// Every call begins so: nothing is said yet. What failed is written into the returned error; NULL: there is no memory for it.
struct wattle_error *cap_words_begin(void);
struct wattle_error *cap_words_error(void); // of the call that is going on
// And ends so: `code`, for which there is a sentence then if it is negative.
int cap_words_end(int code);
void cap_words_notice(const char *text); // added to what was noticed before; "" is nothing

/* Which devices a text of the caller's means: "gpu-0", "GPU-8f2c", "gpu-0,package-1", "gpus". */

// ret_devices has room for all of the session's; each once, in the order of the text. -EINVAL, -ENODEV with a sentence.
int cap_choose(struct cap_session *session, const char *text, enum cap_what what, struct cap_device **ret_devices,
	size_t *ret_n, struct wattle_error *reterr);

// The same as names with commas, as the extension for Python keeps them. With WATTLE_DISABLE=1 the text itself.
int cap_choose_names(const char *text, enum cap_what what, char *ret_names, size_t size, struct wattle_error *reterr);

/* Energy of the devices that a search limits, between two instants, while the program's own thread works: a thread reads the
 * counters so often that their updates are seen. */

struct cap_meter;

/* -ENOTSUP with a sentence: there is nothing that gives the energy of one of the devices, or only a model's guess. env outlives
 * it. */
int cap_meter_open(const struct wattle_env *env, struct cap_device *const *devices, size_t n,
	struct cap_meter **ret_meter, struct wattle_error *reterr);
void cap_meter_close(struct cap_meter *meter); // NULL allowed

// Marks are 0 to TRACK_MARKS - 1; a new one takes the place of the old. The instant, CLOCK_MONOTONIC.
int64_t cap_meter_mark(struct cap_meter *meter, size_t mark);
// True when both are known, and the energy between them.
bool cap_meter_between(struct cap_meter *meter, size_t from, size_t to, struct tune_span *ret_span);
// How often the slowest of the counters was updated so far.
uint64_t cap_meter_updates(struct cap_meter *meter);
bool cap_meter_is_lost(struct cap_meter *meter); // a counter was reset: nothing can be told any more

/* A search for the best limit while it goes on: the caller's steps, the limits, the energy that was measured. */

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
