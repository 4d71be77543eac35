/* Leases: a limit with an owner who may die, and limits that stay. This file alone changes devices.
 *
 * Order of things, for every change: lock, journal (fsync), guard, write, read back, journal what was read. Whatever is
 * killed, whenever, the journal knows what was there before, and somebody comes to read it: the owner itself at its
 * end, the guard when the owner's pidfd says that it died, else the next start of wattle or of the helper.
 *
 * The journal is a folder, STATE/caps, with for each device and kind of limit (ID, ID+clocks):
 *   ID.lock      never removed. An OFD lock on a byte of it says that a lease's owner lives; it is the kernel's, so it
 *                goes with the process, needs no pid and can't be stale.
 *   ID.lease     what was there before the lease began, what is or is about to be set, owner (pid, start time, uid,
 *                name), boot id. Text, "key=value" a line, written beside and renamed.
 *   ID.standing  the same for a limit that stays (`cap set` without a command): what was there before the first.
 *
 * A register that holds neither what was set, nor what was about to be, nor what was there before was changed by
 * somebody else: it is left as it is, and that is told.
 *
 * The guard is the program itself again, `wattle --cap-guard …` (wattled likewise): a process of its own session with
 * the owner's pidfd, which has opened the devices beforehand so that it restores within moments, also where NVML takes
 * seconds to start. SIGTERM and SIGINT do not end it while the owner lives. */
#pragma once

#include "cap/device.h"

#include <sys/types.h>

struct cap_owner {
	pid_t pid;
	uint64_t start_ticks; // field 22 of /proc/PID/stat: pids are used again
	uid_t uid;
	char name[64]; // what people know it by: "wattle cap set", "train.py"
};
int cap_owner_self(const char *name, struct cap_owner *ret_owner);

/* How a guard is started: argv in front of the guard's own words ("/usr/bin/wattle"; "/usr/sbin/wattled", its options).
 * NULL: none, for tests and for the guard itself. */
struct cap_guard; // of cap/internal.h
struct cap_guard_program {
	// NULL: argv[0]. Borrowed, as all here. "/proc/self/exe" is us, whatever was installed since.
	const char *program;
	const char *const *argv; // NULL-terminated
	/* *shared is NULL at first. Leases with the same place have one guard in common, which guards all that this
	 * process keeps. NULL: each lease has its own. */
	struct cap_guard **shared;
};

struct cap_outcome {
	double previous, set; // W or MHz; set: as read back
	bool was_foreign;     // somebody else had changed it: theirs stays
	double foreign;       // what it was then
	bool was_rounded;     // the device took another value than was asked
	bool was_nothing;     // cap_reset: there was no limit of wattle's
	char text[300];       // one sentence for people where there is something to tell; "" else
};

struct cap_lease; // one device, one owner

/* Takes the lease and starts its guard; changes nothing yet. -EBUSY with a sentence that names the owner of the lease
 * that there is; -EACCES, -ENODEV as cap_write; -EROFS and its like where the journal can't be written (then nothing
 * may be changed). The owner is this process. */
int cap_lease_open(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner,
	const struct cap_guard_program *guard, struct cap_lease **ret_lease, struct wattle_error *reterr);
/* Any number of times. -ERANGE with the range; -EACCES, -ENODEV, -EIO: what was there before is back or the sentence
 * says so. -ESTALE: somebody else has changed the limit since, theirs stays; *ret_outcome (was_foreign, foreign) is
 * filled in then. */
int cap_lease_set(struct cap_lease *lease, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
// 0: as it was set. 1: somebody changed it meanwhile (the lease goes on, and will leave it alone). Also starts the
// guard again if that was killed. -ENODEV: gone.
int cap_lease_check(struct cap_lease *lease, struct cap_outcome *ret_outcome);
int cap_lease_guard_fd(const struct cap_lease *lease); // readable when the guard died: call cap_lease_check. -1: none
// Restores, strikes it from the journal, frees it. A device that is gone stays in the journal for the next start.
int cap_lease_end(struct cap_lease *lease, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
/* In a forked child, which has inherited its parent's lease: closes its copies of descriptors (the lock above all,
 * which would seem to live on after the parent) and frees it; changes nothing, and is safe straight after the fork of a
 * threaded program. */
void cap_lease_disown(struct cap_lease *lease);
// Ends the lease and leaves the limit: it becomes one that stays (tune --apply). `previous` is kept for cap_reset.
int cap_lease_keep(struct cap_lease *lease, struct wattle_error *reterr);

/* A limit that stays, `cap set DEVICE WATTS`. for_ns > 0: only so long; the guard is its owner then. */
int cap_stand(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner, double value,
	int64_t for_ns, const struct cap_guard_program *guard, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr);
// Whether a limit that stays is on it, what was there before (NaN: none), and who was the first to set one, or root.
bool cap_stands(const struct wattle_env *env, const struct cap_device *device, double *ret_before,
	struct cap_owner *ret_owner);
// The same by device->current and lease: one that somebody has changed, or that the driver has forgotten, stands no more.
bool cap_stands_still(const struct wattle_env *env, const struct cap_device *device, double *ret_before);
/* What was there before wattle's first change, else (or to_default) the device's default. Without a standing limit and
 * without to_default nothing is done, and the outcome says so. -EBUSY while a lease is on it. */
int cap_reset(const struct wattle_env *env, struct cap_device *device, bool to_default, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr);

// Who has it now, in words ("wattle cap set, pid 4242, user alice"); false: nobody.
bool cap_lease_holder(const struct wattle_env *env, const struct cap_device *device, struct cap_owner *ret_owner,
	char *ret_text, size_t size);

/* Restores what owners who died left behind. Costs one system call where there is no journal. `tell` (may be NULL) is
 * called once a device with a sentence: restored, changed by somebody else, or why it can't be (with the remedy).
 * Returns the number of limits restored, or negative errno. */
int cap_recover(const struct wattle_env *env, void (*tell)(void *data, const char *text), void *data);

// The guard's main, after its options are parsed: argv as cap_lease_open gives it. Returns an exit status.
int cap_guard_main(const struct wattle_env *env, int argc, char **argv);

/* A limit that somebody holds, whichever way it is done: by this process, or by the helper where this process may not.
 * What `wattle cap`, the library and the tuner use. */

struct cap_hold;

struct cap_holder {
	const struct wattle_env *env; // borrowed
	struct cap_owner owner;
	struct cap_guard_program guard;
};

/* Fills in, for devices that this process may not set, whether the helper would (settable, why, remedy), and who has a
 * lease. With the helper away or refusing, they stay as they are, with a remedy that names it. */
void cap_holds_describe(const struct cap_holder *holder, struct cap_devices *devices);

int cap_hold_open(const struct cap_holder *holder, struct cap_device *device, struct cap_hold **ret_hold,
	struct wattle_error *reterr);
int cap_hold_set(struct cap_hold *hold, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
int cap_hold_check(struct cap_hold *hold,
	struct cap_outcome *ret_outcome);     // as cap_lease_check; -EPIPE: the helper died
int cap_hold_fd(const struct cap_hold *hold); // readable: call cap_hold_check. -1: none
int cap_hold_end(struct cap_hold *hold, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
void cap_hold_disown(struct cap_hold *hold); // in a forked child, as cap_lease_disown; NULL allowed
int cap_hold_keep(struct cap_hold *hold, struct wattle_error *reterr);
bool cap_hold_is_helped(const struct cap_hold *hold);

// The limits that stay, likewise by ourselves or by the helper.
int cap_hold_stand(const struct cap_holder *holder, struct cap_device *device, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
// Ends the limit for some time that this process has just set, and nothing else.
int cap_hold_end_timed(const struct cap_holder *holder, struct cap_device *device, struct wattle_error *reterr);
int cap_hold_reset(const struct cap_holder *holder, struct cap_device *device, bool to_default,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
