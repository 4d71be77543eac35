/* What this process has limited: one table for all of its threads, because a lease belongs to the process and the calls name
 * devices only. The one state of the library that is not the caller's.
 *
 * Opened by the first call, and kept: to start NVML takes up to seconds. A forked child begins with an empty one. */
#pragma once

#include "cap/hold.h"

#include <limits.h>
#include <pthread.h>

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
