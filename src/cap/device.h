/* What of this machine can be limited: power of GPUs and CPU packages, clocks of NVIDIA GPUs. Find, read, change,
 * verify.
 *
 * A device is described by the registers that a limit touches, in the hardware's own units; a whole state of them is a
 * `struct cap_setting`. Nothing here remembers anything: who may change a device, what is written down before, and what
 * comes back afterwards is cap/lease.h, which works on settings and knows no hardware. Users of caps go through
 * cap/lease.h.
 *
 * A back end is a `const struct cap_ops` at the end of one file and its line in device.c. */
#pragma once

#include "base/env.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cap_what {
	CAP_POWER, // in W
	CAP_CLOCKS // an upper bound of the graphics clock, in MHz
};
extern const char *const cap_what_names[];    // NULL-terminated
const char *cap_what_name(enum cap_what what); // "power", "clocks": in the journal and in messages
const char *cap_what_unit(enum cap_what what); // "W", "MHz"

enum { CAP_FIELDS_MAX = 8, CAP_FIELD_NAME_SIZE = 96, CAP_ID_SIZE = 96 };

/* One register: "limit_mw", "power1_cap_uw", "intel-rapl:0/constraint_0_power_limit_uw", "intel-rapl:0/enabled". */
struct cap_field {
	char name[CAP_FIELD_NAME_SIZE];
	int64_t value;
};
struct cap_setting { // fields in the order in which they are written
	struct cap_field fields[CAP_FIELDS_MAX];
	size_t n;
};

struct cap_ops;

struct cap_device {
	char name[48];        // "gpu-0", "package-0", "package-0-die-1": as the domains of sensor/sensor.h are named
	char label[96];       // for people: "NVIDIA H100 80GB HBM3", "intel-rapl:0"
	char id[CAP_ID_SIZE]; // the same after a reboot and a renumbering: "GPU-8f2c…", "pci-0000:43:00.0", "package-0"
	enum cap_what what;
	/* In W or MHz; NaN: unknown. current: what is in force by this device's own register (clocks can't be read back
	 * by NVML: NaN). default: what the device comes up with, where it says so. enforced: after all limiters, if
	 * told. */
	double current, default_, min, max, enforced;
	bool min_is_ours; // the device states no minimum: it is wattle's own guard (device.c says which)
	bool settable;    // a change would be accepted from this process now, as far as can be told without one
	bool helped; // … by the helper for this process; filled in by cap_holds_describe, which then narrows min and max
	char why[160];    // if not settable: the reason
	char remedy[200]; // and the command that mends it; "" if nothing can
	char hint[200];   // settable, but something is to be known: persistence mode is off; "" none
	bool forgets;     // what is set is lost when the last program leaves the device; `hint` says so
	char lease[160];  // who has a lease on it, in words; "" nobody. Filled in by cap_holds_describe
	bool stands;      // a limit of wattle's that stays is on it; likewise
	double before;    // and what was there before it, what `cap reset` puts back; NaN: none, or not known
	bool asleep; // a GPU that was not woken to be asked: its figures are unknown until cap_devices_find names it

	const struct cap_ops *ops;
	void *state;  // ops' own
	size_t index; // ops' own
};

/* What cap_list finds. Owned by the caller; devices do not move until close. */
struct cap_devices {
	struct cap_device *devices; // owned; GPUs by number, then packages; of each name power before clocks
	size_t n;
	struct cap_backend {
		const struct cap_ops *ops;
		void *state; // owned
	} backends[8];
	size_t n_backends;
	char absent[400]; // why there are none, or fewer than one would expect, in words for people; "" nothing to say
	char absent_gpus[500]; // the same for those who name a GPU, also where nobody would expect one
};

// Negative errno only for -ENOMEM; a machine without such devices is normal. *ret_devices is always valid.
int cap_devices_open(struct cap_devices *ret_devices, const struct wattle_env *env, struct wattle_error *reterr);
void cap_devices_close(struct cap_devices *devices);
// By name ("gpu-0"), by id, by an unambiguous beginning of a GPU's UUID. -ENODEV with a sentence that lists those there
// are.
int cap_devices_find(struct cap_devices *devices, const char *name, enum cap_what what, struct cap_device **ret_device,
	struct wattle_error *reterr);

/* choose.c: those that a text names: "gpu-0", "GPU-8f2c", "gpu-0,package-1", "gpus": the GPUs with such a limit that this program is shown.
 * In the order of the text, each once; ret_chosen has room for all. -ENODEV, -EINVAL (also for one named twice, unless
 * allow_repeats) with a sentence. */
int cap_devices_choose(struct cap_devices *devices, const struct wattle_env *env, const char *names, enum cap_what what,
	bool allow_repeats, struct cap_device **ret_chosen, size_t *ret_n, struct wattle_error *reterr);

/* The registers as they are now. -ENODEV: the device is gone; -EACCES, -EIO …; with a sentence. Also renews current,
 * enforced of `device`. */
int cap_read(struct cap_device *device, struct cap_setting *ret_setting, struct wattle_error *reterr);
/* What the registers are to be under a limit of `value` (W, MHz), when `before` is what they were before the first
 * change of who limits. Only those that the limit concerns are in it: what else `before` has is to be left alone.
 * -ERANGE with a sentence that names the range; nothing is written. */
int cap_plan(struct cap_device *device, const struct cap_setting *before, double value, struct cap_setting *ret_setting,
	struct wattle_error *reterr);
/* Writes them, in their order, skipping those that hold the value already. -EACCES (not allowed: reterr says how to
 * be), -ENODEV (gone), -ERANGE, -EIO. Some of them may have been written then. */
int cap_write(struct cap_device *device, const struct cap_setting *setting, struct wattle_error *reterr);
// The setting that the device comes up with. -ENODATA where it does not say.
int cap_default_setting(struct cap_device *device, const struct cap_setting *now, struct cap_setting *ret_setting,
	struct wattle_error *reterr);
// The i-th path below /sys that setting the device writes: a register, or a folder of registers. NULL: no more.
const char *cap_file_of(const struct cap_device *device, size_t i);
/* Moves values that this device cannot have had (1 uW, a switch of 7) to the nearest valid one. Use it on settings read from a file. If
 * the device states no range, limits from 1 W to the registers' maximum stay as they are. Returns whether a value changed. */
bool cap_setting_bound(const struct cap_device *device, struct cap_setting *setting);
// The limit that a setting means, in W or MHz; NaN: none.
double cap_value_of(const struct cap_device *device, const struct cap_setting *setting);
// Whether a register that was set to `asked` may read `found`: hardware rounds (RAPL down to 1/8 W).
bool cap_field_matches(const struct cap_device *device, const char *field, int64_t asked, int64_t found);
// What can't be read back (locked clocks) can't be compared: then every setting counts as ours.
bool cap_reads_back(const struct cap_device *device);
