/* Leases (limits that end with their owner) and persistent limits. Devices are changed only through this interface.
 *
 * Every change follows the order: lock, journal (fsync), guard, write, read back, journal the value read. Whichever
 * process is killed at any time, the journal holds the previous value and some process restores it: the owner at its
 * end, the guard when the owner's pidfd signals its death, or the next start of wattle or the helper.
 *
 * The journal is the folder STATE/caps, with these files for each device and kind of limit (ID, ID+clocks):
 *   ID.lock      never removed. An OFD lock on one of its bytes shows that a lease's owner is alive. The kernel
 *   releases
 *                the lock with the process, so it needs no pid and can't be stale.
 *   ID.lease     the value before the lease, the value set or about to be set, owner (pid, start time, uid, name), boot
 *                id. Text, one "key=value" per line, written under a temporary name and renamed.
 *   ID.standing  the same for a persistent limit (`cap set` without a command): the value before the first one.
 *
 * A register that holds none of the values set, about to be set or previous was changed by another program: it is left
 * alone, and this is reported.
 *
 * The guard is the same program, `wattle --cap-guard …` (or wattled): a process in its own session with the owner's
 * pidfd. It opens the devices in advance, so that it restores within moments even where NVML takes seconds to start.
 * SIGTERM and SIGINT do not end it while the owner lives. */
#pragma once

#include "cap/device.h"

#include <sys/types.h>

struct cap_owner {
	pid_t pid;
	uint64_t start_ticks; // field 22 of /proc/PID/stat: pids are reused
	uid_t uid;
	char name[64]; // shown to users: "wattle cap set", "train.py"
};
int cap_owner_self(const char *name, struct cap_owner *ret_owner);

/* How to start a guard: argv precedes the guard's own arguments ("/usr/bin/wattle"; "/usr/sbin/wattled", its options).
 * NULL: no guard, for tests and for the guard itself. */
struct cap_guard; // see cap/internal.h
struct cap_guard_program {
	// Path of the program; NULL: argv[0]. Borrowed, like all members. "/proc/self/exe" is the running program even
	// after an upgrade.
	const char *program;
	const char *const *argv; // NULL-terminated
	/* *shared is NULL at first. Leases with the same pointer share one guard for all limits of this process. NULL:
	 * each lease has its own guard. */
	struct cap_guard **shared;
};

struct cap_outcome {
	double previous, set; // W or MHz; set: value read back
	bool was_foreign;     // another program had changed the limit, which is left alone
	double foreign;       // the value set by the other program
	bool was_rounded;     // the device took another value than requested
	bool was_nothing;     // cap_reset: there was no limit set by wattle
	char text[300];       // message for the user; "" none
};

struct cap_lease; // one device, one owner

/* Takes the lease and starts its guard, without changing the limit. The owner is this process. -EBUSY with a message
 * that names the present owner; -EACCES, -ENODEV as cap_write; -EROFS and similar if the journal can't be written (the
 * limit must not be changed then). */
int cap_lease_open(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner,
	const struct cap_guard_program *guard, struct cap_lease **ret_lease, struct wattle_error *reterr);
/* Sets the limit; may be called repeatedly. -ERANGE with the range; -EACCES, -ENODEV, -EIO: the previous limit is
 * restored, or the message states otherwise. -ESTALE: another program has changed the limit, which is left alone;
 * *ret_outcome (was_foreign, foreign) is filled in. */
int cap_lease_set(struct cap_lease *lease, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
// 0: the limit is unchanged. 1: another program changed it (the lease continues and leaves it alone). Also restarts a
// killed guard. -ENODEV: the device is gone.
int cap_lease_check(struct cap_lease *lease, struct cap_outcome *ret_outcome);
int cap_lease_guard_fd(const struct cap_lease *lease); // readable when the guard died: then call cap_lease_check. -1: none
// Restores the previous limit, removes the journal entry and frees the lease. If the device is gone, the entry stays
// for the next start.
int cap_lease_end(struct cap_lease *lease, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
/* For a forked child that inherited its parent's lease: closes its copies of descriptors (above all the lock, which
 * would otherwise outlive the parent) and frees the memory. Changes nothing, and is safe directly after the fork of a
 * threaded program. */
void cap_lease_disown(struct cap_lease *lease);
// Ends the lease but keeps the limit as a persistent one (tune --apply). `previous` is kept for cap_reset.
int cap_lease_keep(struct cap_lease *lease, struct wattle_error *reterr);

/* Sets a persistent limit, as `cap set DEVICE WATTS`. for_ns > 0: for this time only, with the guard as owner. */
int cap_set_persistent(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner,
	double value, int64_t for_ns, const struct cap_guard_program *guard, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr);
// Whether the device has a persistent limit; the value before it (NaN: unknown) and its first owner, or root.
bool cap_has_persistent(const struct wattle_env *env, const struct cap_device *device, double *ret_before,
	struct cap_owner *ret_owner);
// Same check against device->current and lease: false if another program has changed the limit or the driver has lost
// it.
bool cap_persistent_is_current(const struct wattle_env *env, const struct cap_device *device, double *ret_before);
/* Restores the value from before wattle's first change, or the device's default (to_default or if the former is
 * unknown). Without a persistent limit and without to_default it does nothing, and the outcome states this. -EBUSY while
 * the device has a lease. */
int cap_reset(const struct wattle_env *env, struct cap_device *device, bool to_default, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr);

// Owner of the present lease, with a description ("wattle cap set, pid 4242, user alice"); false: no lease.
bool cap_lease_holder(const struct wattle_env *env, const struct cap_device *device, struct cap_owner *ret_owner,
	char *ret_text, size_t size);

/* Restores limits that dead owners left. Costs one system call if there is no journal. `tell` (may be NULL) is called
 * once per device with a message: restored, changed by another program, or why it can't be restored (with the remedy).
 * Returns the number of limits restored, or negative errno. */
int cap_recover(const struct wattle_env *env, void (*report)(void *data, const char *text), void *data);

// Main function of the guard, with argv as passed by cap_lease_open. Returns an exit status.
int cap_guard_main(const struct wattle_env *env, int argc, char **argv);

/* A limit held for the caller by either method: by this process, or by the helper if this process may not change the
 * device. Used by `wattle cap`, the library and the tuner. */

struct cap_hold;

struct cap_holder {
	const struct wattle_env *env; // borrowed
	struct cap_owner owner;
	struct cap_guard_program guard;
};

/* For devices that this process may not set: fills in whether the helper may (settable, why, remedy), and the lease
 * holder. If the helper is absent or refuses, they stay as they are, with a remedy that names the helper. */
void cap_holds_describe(const struct cap_holder *holder, struct cap_devices *devices);

int cap_hold_open(const struct cap_holder *holder, struct cap_device *device, struct cap_hold **ret_hold,
	struct wattle_error *reterr);
int cap_hold_set(struct cap_hold *hold, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
int cap_hold_check(struct cap_hold *hold,
	struct cap_outcome *ret_outcome);     // as cap_lease_check; -EPIPE: the helper died
int cap_hold_fd(const struct cap_hold *hold); // readable when cap_hold_check should be called. -1: none
int cap_hold_end(struct cap_hold *hold, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
void cap_hold_disown(struct cap_hold *hold); // for a forked child, as cap_lease_disown; NULL allowed
int cap_hold_keep(struct cap_hold *hold, struct wattle_error *reterr);
bool cap_hold_is_remote(const struct cap_hold *hold);

// Persistent limits, set by this process or by the helper.
int cap_hold_set_persistent(const struct cap_holder *holder, struct cap_device *device, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
// Ends a timed limit that this process has just set, and no other limit.
int cap_hold_end_timed(const struct cap_holder *holder, struct cap_device *device, struct wattle_error *reterr);
int cap_hold_reset(const struct cap_holder *holder, struct cap_device *device, bool to_default,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
