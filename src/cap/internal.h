/* Registers that are files of /sys: decimal numbers, one a file. */
#pragma once

#include "cap/device.h"
#include "cap/journal.h"
#include "cap/lease.h"

struct cap_files {
	struct {
		char name[CAP_FIELD_NAME_SIZE]; // of the register
		char path[200];                 // relative to /sys
	} files[CAP_FIELDS_MAX];
	size_t n;
};

/* Adds folder/file as a register called prefix + file, if it holds a number. Its number in `files`; -1: it does not, or
 * there is no room. */
int cap_files_add(struct cap_files *files, const struct wattle_env *env, const char *folder, const char *file,
	const char *prefix);
// The value of register i in a setting; VALUE_MISSING: it is not in there, or i is negative.
int64_t cap_files_value(const struct cap_files *files, int i, const struct cap_setting *setting);

int cap_files_read(const struct cap_files *files, const struct wattle_env *env, const struct cap_device *device,
	struct cap_setting *ret_setting, struct wattle_error *reterr);
int cap_files_write(const struct cap_files *files, const struct wattle_env *env, const struct cap_device *device,
	const struct cap_setting *setting, struct wattle_error *reterr);
// Fills settable, why and remedy, from whether this process may write them all.
void cap_files_ask_permission(const struct cap_files *files, const struct wattle_env *env, struct cap_device *device);

/* A back end of cap/device.h: one kind of hardware that can be limited. Implemented by the files of this room that end
 * in a `const struct cap_ops`; called by device.c only. */

// What a back end has to do with at open.
struct cap_finder {
	const struct wattle_env *env; // borrowed; outlives the devices
	struct cap_devices *devices;
	size_t n_gpus; // numbered so far; the back end adds those it numbers, as the sensors do (gpu_roster.h)
};

struct cap_ops {
	bool is_blind; // what was written can't be read back
	/* Adds what it finds with cap_finder_add, numbers GPUs by finder->n_gpus, says with cap_finder_explain why
	 * there are fewer than one would expect. -ENOMEM only; *ret_state is closed after a failure too. Not in ops of
	 * single devices. */
	int (*open)(struct cap_finder *finder, void **ret_state);
	void (*close)(void *state); // NULL allowed
	// Fills in a device that was found asleep, and its fellows, at the price of waking it. NULL: none ever sleeps.
	int (*wake)(struct cap_device *device, struct cap_devices *devices, struct wattle_error *reterr);
	// As cap_read, and renews current and enforced.
	int (*read)(struct cap_device *device, struct cap_setting *ret_setting, struct wattle_error *reterr);
	// As cap_plan; `value` is within the device's range.
	void (*plan)(const struct cap_device *device, const struct cap_setting *before, double value,
		struct cap_setting *ret_setting);
	int (*write)(struct cap_device *device, const struct cap_setting *setting, struct wattle_error *reterr);
	// False: it does not say. NULL: as `plan` for the device's default.
	bool (*default_setting)(const struct cap_device *device, const struct cap_setting *now,
		struct cap_setting *ret_setting);
	double (*value_of)(const struct cap_device *device, const struct cap_setting *setting);
	// See cap_file_of. NULL: the back end writes no files of /sys.
	const char *(*file)(const struct cap_device *device, size_t i);
	double scale;           // unit of a register's value in W or MHz
	const char *not_limits; // registers whose names end so are switches, 0 or 1; NULL: none
	bool zero_is_none;      // a register value of 0 means no limit
	int64_t step; // what was set may read less than so much beside what was asked: the hardware's steps. 0: exactly
};

extern const struct cap_ops cap_nvml, cap_amdgpu, cap_intel_gpu, cap_powercap;

// A new device, zeroed but for what `like` has and its figures, which are unknown. NULL: no memory. Valid until the
// next one.
struct cap_device *cap_finder_add(struct cap_finder *finder, const struct cap_device *like);
// A sentence for cap_devices::absent, absent_gpus, or both.
enum { CAP_ABSENT = 1, CAP_ABSENT_GPUS = 2, CAP_ABSENT_BOTH = 3 };
void cap_finder_explain(struct cap_finder *finder, int where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

void cap_set_why(struct cap_device *device, const char *why, const char *remedy); // not settable
void cap_set_asleep(struct cap_device *device);
// Copies what may stand in a file's name; the rest becomes "_".
void cap_set_id(struct cap_device *device, const char *prefix, const char *text);
void cap_setting_add(struct cap_setting *setting, const char *name, int64_t value);
const struct cap_field *cap_setting_find(const struct cap_setting *setting, const char *name); // NULL: not in it
// For devices that state no minimum: 10 % of the default (else of what is in force), at least 5 W; with it max, where
// the hardware has no bound of its own: the larger of the two.
void cap_guard_range(struct cap_device *device);

/* The two ways in which a device is changed, both with its entry in the journal before anything is written: to a limit,
 * and back. Called by who has the device's lease or byte 0 of its lock. */

/* Journals `next`, writes it, reads it back, journals what was read. `now`: the registers as they are. On failure what
 * was there is put back, or the sentence says that it could not be (then the journal still knows both). */
int change_apply(const struct journal *journal, enum journal_kind kind, struct journal_entry *entry,
	struct cap_device *device, const struct cap_setting *now, const struct cap_setting *next,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
/* Puts back what the entry says was there before, in the registers that hold what was or was about to be set, and reads
 * it back. The others were changed by somebody else and stay: was_foreign. Returns how many registers were written. */
int change_undo(const struct journal_entry *entry, struct cap_device *device, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr);

// Whether a register holds neither what was there before nor what is or is about to be set. Never on what can't be read
// back.
bool change_is_foreign(const struct journal_entry *entry, const struct cap_device *device,
	const struct cap_setting *now);
// Whether all registers of the first have the same value in the second. Both as they were read: to the last digit.
bool change_is_same(const struct cap_setting *one, const struct cap_setting *other);
// "300 W", "1410 MHz", "no limit"
enum { AMOUNT_SIZE = 40 };
const char *change_amount(const struct cap_device *device, const struct cap_setting *setting, char out[AMOUNT_SIZE]);

/* The guard of lease.h, from its owner's side. */

struct cap_guard;

/* Started and ready: it has the owner's pidfd, the journal and the devices open. The owner is this process. With
 * program->shared it may be one that runs already. */
int guard_start(const struct cap_guard_program *program, const struct journal *journal, struct cap_guard **ret_guard,
	struct wattle_error *reterr);
int guard_fd(const struct cap_guard *guard); // readable: it died
/* What the journal has of a lease, or (neither set nor next) that it has ended: the guard's memory of it, for where
 * somebody has removed the journal's folder meanwhile. NULL allowed. */
void guard_tell(const struct cap_guard *guard, const struct journal_entry *lease);
bool guard_is_dead(const struct cap_guard *guard);
// One lease less; with its last one the guard is told that all is well, and goes. NULL allowed.
void guard_end(const struct cap_guard_program *program, struct cap_guard *guard);
// In a forked child: closes the copy of its descriptor.
void guard_disown(struct cap_guard *guard);

/* A guard that is the owner of a limit for some time. */
int guard_hold_for(const struct cap_guard_program *program, const struct journal *journal,
	const struct cap_device *device, const struct cap_owner *owner, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);

/* What an owner and its guard say to each other: one order, one answer, a struct journal_entry whenever the journal gets
 * one, and GUARD_DONE. Both are the same program,
 * started a moment apart; `size` finds out where they are not (a new version was installed in between). */

enum { GUARD_PIDFD, GUARD_JOURNAL, GUARD_FDS }; // descriptors that go with the order
enum { GUARD_DONE = 'd' };

struct guard_order {
	uint32_t size;
	enum cap_what what;
	struct cap_keeper keeper; // whom to wait for
	int64_t for_ns;           // 0: wait for the keeper's death; else: set `value` on the device `id` for so long
	double value;
	struct cap_owner owner; // whom people know, of that
	char id[CAP_ID_SIZE];
	char journal_path[600]; // for messages
};

struct guard_answer {
	int32_t code; // 0 or negative errno, then why in `text`
	struct cap_outcome outcome;
	char text[600];
};

/* What limits that stay have in common with leases that are kept, and with those for some time. */

/* Gives the entry of a new standing limit what the one that there is hands on: what was there before the first, and its
 * owner. `now`: the registers before the new one. *ret_set: what the old one had set; empty: none that counts. */
int standing_inherit(const struct journal *journal, const char *stem, const struct cap_device *device,
	const struct cap_setting *now, struct journal_entry *entry, struct cap_setting *ret_set,
	struct wattle_error *reterr);
// Ends a limit for some time before its hour, and nothing else. 1: it had to; 0: there was none.
int standing_end_timed(const struct wattle_env *env, const struct cap_device *device, struct wattle_error *reterr);

/* The lease of a guard that is an owner itself, until its hour comes. */

// As cap_lease_open. timed: the journal says so, and `cap reset` may end it by SIGTERM.
int lease_open_as(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner, bool timed,
	const struct cap_guard_program *guard, struct cap_lease **ret_lease, struct wattle_error *reterr);

/* The ways in which a limit can be held. Implemented by hold_own.c (this process writes) and hold_helped.c (the helper
 * does); hold.c asks them in this order, and takes the first that would do it. */

struct hold_ops {
	/* Fills in for devices that are not settable so far whether this way would do, or what would make it; and
	 * `lease` where it knows of one that our own journal does not. NULL: it has nothing to add. */
	void (*describe)(const struct cap_holder *holder, struct cap_devices *devices);
	// Whether this way would change that device, as far as can be told without a change.
	bool (*would)(const struct cap_holder *holder, const struct cap_device *device);
	// As cap_hold_open and so on. `state` is the way's own.
	int (*open)(const struct cap_holder *holder, struct cap_device *device, void **ret_state,
		struct wattle_error *reterr);
	int (*set)(void *state, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
	int (*check)(void *state, struct cap_outcome *ret_outcome);
	int (*fd)(const void *state);
	int (*end)(void *state, struct cap_outcome *ret_outcome, struct wattle_error *reterr); // frees state
	int (*keep)(void *state, struct wattle_error *reterr);                                 // frees state
	void (*disown)(void *state);                                                           // frees state
	int (*stand)(const struct cap_holder *holder, struct cap_device *device, double value, int64_t for_ns,
		struct cap_outcome *ret_outcome, struct wattle_error *reterr);
	// Ends a limit for some time before its hour; a limit that stands below it stays.
	int (*end_timed)(const struct cap_holder *holder, struct cap_device *device, struct wattle_error *reterr);
	int (*reset)(const struct cap_holder *holder, struct cap_device *device, bool to_default,
		struct cap_outcome *ret_outcome, struct wattle_error *reterr);
};

extern const struct hold_ops hold_own, hold_helped;
