/* Registers stored as files of /sys: one decimal number per file. */
#pragma once

#include "cap/device.h"
#include "cap/journal.h"
#include "cap/lease.h"

struct cap_files {
	struct {
		char name[CAP_FIELD_NAME_SIZE]; // register name
		char path[200];                 // relative to /sys
	} files[CAP_FIELDS_MAX];
	size_t n;
};

/* Adds folder/file as register prefix + file if it holds a number. Returns its index in `files`; -1: no number, or no
 * room. */
int cap_files_add(struct cap_files *files, const struct wattle_env *env, const char *folder, const char *file,
	const char *prefix);
// Value of register i in a setting; VALUE_MISSING: not in the setting, or i is negative.
int64_t cap_files_value(const struct cap_files *files, int i, const struct cap_setting *setting);

int cap_files_read(const struct cap_files *files, const struct wattle_env *env, const struct cap_device *device,
	struct cap_setting *ret_setting, struct wattle_error *reterr);
int cap_files_write(const struct cap_files *files, const struct wattle_env *env, const struct cap_device *device,
	const struct cap_setting *setting, struct wattle_error *reterr);
// Fills in settable, why and remedy by checking whether this process may write all registers.
void cap_files_check_permission(const struct cap_files *files, const struct wattle_env *env, struct cap_device *device);

/* Interface of a back end of cap/device.h: one kind of hardware with limits. Implemented by the files of this folder
 * that end in a `const struct cap_ops`; called by device.c only. */

// Context of a back end's open.
struct cap_finder {
	const struct wattle_env *env; // borrowed; outlives the devices
	struct cap_devices *devices;
	size_t n_gpus; // GPUs numbered so far; the back end adds its own, in the order of the sensors (gpu_roster.h)
};

struct cap_ops {
	bool is_write_only; // written values can't be read back
	/* Adds devices with cap_finder_add, numbers GPUs from finder->n_gpus and reports with cap_finder_explain why
	 * devices are missing. -ENOMEM only; *ret_state is closed after a failure too. Unset in the ops of single
	 * devices. */
	int (*open)(struct cap_finder *finder, void **ret_state);
	void (*close)(void *state); // NULL allowed
	// Wakes a sleeping device and fills in its values and those of related devices. NULL: devices never sleep.
	int (*wake)(struct cap_device *device, struct cap_devices *devices, struct wattle_error *reterr);
	// As cap_read; also updates current and enforced.
	int (*read)(struct cap_device *device, struct cap_setting *ret_setting, struct wattle_error *reterr);
	// As cap_plan; `value` is within the device's range.
	void (*plan)(const struct cap_device *device, const struct cap_setting *before, double value,
		struct cap_setting *ret_setting);
	int (*write)(struct cap_device *device, const struct cap_setting *setting, struct wattle_error *reterr);
	// False: the device does not report it. NULL: `plan` with the device's default.
	bool (*default_setting)(const struct cap_device *device, const struct cap_setting *now,
		struct cap_setting *ret_setting);
	double (*value_of)(const struct cap_device *device, const struct cap_setting *setting);
	// As cap_file_of. NULL: the back end writes no files of /sys.
	const char *(*file)(const struct cap_device *device, size_t i);
	double scale;           // size of one register unit in W or MHz
	const char *not_limits; // suffix of the names of on/off registers (0 or 1); NULL: none
	bool zero_is_none;      // a register value of 0 means no limit
	int64_t step; // a value read back may differ from the requested one by less than this hardware step; 0: exact
};

extern const struct cap_ops cap_nvml, cap_amdgpu, cap_intel_gpu, cap_powercap;

// Adds a zeroed device with the identity of `like` and unknown values. NULL: out of memory. Valid until the next call.
struct cap_device *cap_finder_add(struct cap_finder *finder, const struct cap_device *like);
// Bit mask: selects cap_devices::absent, absent_gpus, or both for a message.
enum { CAP_ABSENT = 1, CAP_ABSENT_GPUS = 2, CAP_ABSENT_BOTH = 3 };
void cap_finder_explain(struct cap_finder *finder, int where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

void cap_set_why(struct cap_device *device, const char *why, const char *remedy); // marks it as not settable
void cap_set_asleep(struct cap_device *device);
// Copies the characters that are valid in a file name and replaces the rest by "_".
void cap_set_id(struct cap_device *device, const char *prefix, const char *text);
void cap_setting_add(struct cap_setting *setting, const char *name, int64_t value);
const struct cap_field *cap_setting_find(const struct cap_setting *setting, const char *name); // NULL: not found
// Sets the minimum of devices that report none: 10 % of the default (or of the limit in force), at least 5 W. If the
// hardware has no maximum either, sets max to the larger of the two.
void cap_guard_range(struct cap_device *device);

/* The two ways to change a device: setting and restoring a limit. Both journal before writing. The caller holds the
 * device's lease or byte 0 of its lock. */

/* Journals `next`, writes it, reads it back and journals the result. `now`: present register values. On failure
 * restores the previous values, or the message states that this failed (the journal then still holds both). */
int change_apply(const struct journal *journal, enum journal_kind kind, struct journal_entry *entry,
	struct cap_device *device, const struct cap_setting *now, const struct cap_setting *next,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
/* Restores the entry's previous values in the registers that hold `set` or `next`, and reads them back. Registers
 * changed by another program stay as they are: was_foreign. Returns the number of registers written. */
int change_undo(const struct journal_entry *entry, struct cap_device *device, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr);

// Whether a register holds neither the previous value nor `set` nor `next`. Always false for devices that can't be read
// back.
bool change_is_foreign(const struct journal_entry *entry, const struct cap_device *device,
	const struct cap_setting *now);
// Whether all registers of `one` have exactly the same value in `other`. Both must have been read from the device.
bool change_is_same(const struct cap_setting *one, const struct cap_setting *other);
// "300 W", "1410 MHz", "no limit"
enum { AMOUNT_SIZE = 40 };
const char *change_amount(const struct cap_device *device, const struct cap_setting *setting, char out[AMOUNT_SIZE]);

/* The guard of lease.h, as seen by its owner. */

struct cap_guard;

/* Starts a guard and waits until it has opened the owner's pidfd, the journal and the devices. The owner is this
 * process. With program->shared, may reuse a running guard. */
int guard_start(const struct cap_guard_program *program, const struct journal *journal, struct cap_guard **ret_guard,
	struct wattle_error *reterr);
int guard_fd(const struct cap_guard *guard); // readable when the guard died
/* Sends the guard the journal entry of a lease, or its end (neither set nor next). The guard uses its copy if the
 * journal's folder has been removed. NULL allowed. */
void guard_send(const struct cap_guard *guard, const struct journal_entry *lease);
bool guard_is_dead(const struct cap_guard *guard);
// Detaches one lease. After the last one, requests the guard to exit without restoring anything. NULL allowed.
void guard_end(const struct cap_guard_program *program, struct cap_guard *guard);
// For a forked child: closes its copy of the descriptor.
void guard_disown(struct cap_guard *guard);

/* Starts a guard that owns a limit for a fixed time. */
int guard_hold_for(const struct cap_guard_program *program, const struct journal *journal,
	const struct cap_device *device, const struct cap_owner *owner, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);

/* Messages between an owner and its guard: one order, one answer, then a struct journal_entry for every new journal
 * entry, and GUARD_DONE at the end. Both run the same program; `size` detects a version installed in between. */

enum { GUARD_PIDFD, GUARD_JOURNAL, GUARD_FDS }; // descriptors sent with the order
enum { GUARD_DONE = 'd' };

struct guard_order {
	uint32_t size;
	enum cap_kind what;
	struct cap_keeper keeper; // process to wait for
	int64_t for_ns;           // 0: wait for the keeper's death; otherwise set `value` on the device `id` for this long
	double value;
	struct cap_owner owner; // owner of the timed limit, shown to users
	char id[CAP_ID_SIZE];
	char journal_path[600]; // for messages
};

struct guard_answer {
	int32_t code; // 0, or negative errno with the reason in `text`
	struct cap_outcome outcome;
	char text[600];
};

/* Functions shared by persistent limits, leases made persistent and timed limits. */

/* Copies the original value and its owner from the present standing entry into a new one. `now`: registers before the
 * new limit. *ret_set: values set by the old entry; empty: none that is valid. */
int persistent_inherit(const struct journal *journal, const char *stem, const struct cap_device *device,
	const struct cap_setting *now, struct journal_entry *entry, struct cap_setting *ret_set,
	struct wattle_error *reterr);
// Ends a timed limit early and leaves other limits alone. 1: ended; 0: there was none.
int persistent_end_timed(const struct wattle_env *env, const struct cap_device *device, struct wattle_error *reterr);

/* The lease of a guard that owns a timed limit. */

// As cap_lease_open. timed: recorded in the journal, so that `cap reset` may end it by SIGTERM.
int lease_open_as(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner, bool timed,
	const struct cap_guard_program *guard, struct cap_lease **ret_lease, struct wattle_error *reterr);

/* Methods of holding a limit: local_limit.c (this process writes) and remote_limit.c (the helper writes). hold.c takes the
 * first one that may change the device. */

struct limit_ops {
	/* For devices that are not settable so far: fills in whether this method could set them, or the remedy. Also
	 * fills in `lease` for leases that are not in this process's journal. NULL: nothing to add. */
	void (*describe)(const struct cap_holder *holder, struct cap_devices *devices);
	// Whether this method may change the device, as far as can be known without trying.
	bool (*can_set)(const struct cap_holder *holder, const struct cap_device *device);
	// As the cap_hold functions. `state` is private to the method.
	int (*open)(const struct cap_holder *holder, struct cap_device *device, void **ret_state,
		struct wattle_error *reterr);
	int (*set)(void *state, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr);
	int (*check)(void *state, struct cap_outcome *ret_outcome);
	int (*fd)(const void *state);
	int (*end)(void *state, struct cap_outcome *ret_outcome, struct wattle_error *reterr); // frees state
	int (*keep)(void *state, struct wattle_error *reterr);                                 // frees state
	void (*disown)(void *state);                                                           // frees state
	int (*set_persistent)(const struct cap_holder *holder, struct cap_device *device, double value, int64_t for_ns,
		struct cap_outcome *ret_outcome, struct wattle_error *reterr);
	// Ends a timed limit early; a persistent limit below it stays.
	int (*end_timed)(const struct cap_holder *holder, struct cap_device *device, struct wattle_error *reterr);
	int (*reset)(const struct cap_holder *holder, struct cap_device *device, bool to_default,
		struct cap_outcome *ret_outcome, struct wattle_error *reterr);
};

extern const struct limit_ops local_limit_ops, remote_limit_ops;
