/* Devices with a configurable limit: power of GPUs and CPU packages, clocks of NVIDIA GPUs. Functions to find, read,
 * change and verify.
 *
 * A device is described by the registers that a limit touches, in the hardware's own units. A `struct cap_setting` is
 * the state of these registers. This interface keeps no state: cap/lease.h decides who may change a device, keeps the
 * journal and restores limits; it works on settings and is independent of the hardware. Users of limits call
 * cap/lease.h.
 *
 * A back end is one file that ends in a `const struct cap_ops`, plus its line in device.c. */
#pragma once

#include "base/env.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cap_kind {
	CAP_POWER, // W
	CAP_CLOCKS // upper bound of the graphics clock, MHz
};
extern const char *const cap_kind_names[];     // NULL-terminated
const char *cap_kind_name(enum cap_kind what); // "power" or "clocks", for the journal and messages
const char *cap_kind_unit(enum cap_kind what); // "W", "MHz"

enum { CAP_FIELDS_MAX = 8, CAP_FIELD_NAME_SIZE = 96, CAP_ID_SIZE = 96 };

/* One register: "limit_mw", "power1_cap_uw", "intel-rapl:0/constraint_0_power_limit_uw", "intel-rapl:0/enabled". */
struct cap_field {
	char name[CAP_FIELD_NAME_SIZE];
	int64_t value;
};
struct cap_setting { // fields in writing order
	struct cap_field fields[CAP_FIELDS_MAX];
	size_t n;
};

struct cap_ops;

struct cap_device {
	char name[48];        // "gpu-0", "package-0", "package-0-die-1": same names as the domains of sensor/sensor.h
	char label[96];       // display name: "NVIDIA H100 80GB HBM3", "intel-rapl:0"
	char id[CAP_ID_SIZE]; // stable across reboots and renumbering: "GPU-8f2c…", "pci-0000:43:00.0", "package-0"
	enum cap_kind what;
	/* In W or MHz; NaN: unknown. current: limit in this device's own register (NVML can't read clock limits back:
	 * NaN). default: limit after power-on, if the device reports it. enforced: the limit in force after all
	 * limiters, if reported. */
	double current, default_, min, max, enforced;
	bool min_is_ours; // the device reports no minimum: `min` is wattle's own (see device.c)
	bool settable;    // this process may change the limit, as far as can be known without trying
	bool is_remote;   // settable through the helper; set by cap_holds_describe, which then narrows min and max
	char why[160];    // reason if not settable
	char remedy[200]; // command that makes it settable; "" none
	char hint[200];   // warning for a settable device, such as persistence mode being off; "" none
	bool forgets;     // the limit is lost when the last program closes the device; `hint` explains it
	char lease[160];  // description of the lease holder; "" no lease. Filled in by cap_holds_describe
	bool is_persistent; // has a persistent limit set by wattle. Filled in by cap_holds_describe
	double before;    // value before the persistent limit, which `cap reset` restores; NaN: none or unknown
	bool asleep; // sleeping GPU: its values are unknown until cap_devices_find selects it

	const struct cap_ops *ops;
	void *state;  // private to ops
	size_t index; // private to ops
};

/* Result of cap_devices_open. Owned by the caller; pointers to devices stay valid until close. */
struct cap_devices {
	struct cap_device *devices; // owned; GPUs by number, then packages; for each name power before clocks
	size_t n;
	struct cap_backend {
		const struct cap_ops *ops;
		void *state; // owned
	} backends[8];
	size_t n_backends;
	char absent[400]; // reason why devices are missing, for messages; "" nothing to report
	char absent_gpus[500]; // the same for a user who names a GPU, also on machines where none is expected
};

// Negative errno only for -ENOMEM; a machine without such devices is normal. *ret_devices is always valid.
int cap_devices_open(struct cap_devices *ret_devices, const struct wattle_env *env, struct wattle_error *reterr);
void cap_devices_close(struct cap_devices *devices);
// Finds a device by name ("gpu-0"), id or an unambiguous prefix of a GPU's UUID. -ENODEV with a message that lists the
// available devices.
int cap_devices_find(struct cap_devices *devices, const char *name, enum cap_kind what, struct cap_device **ret_device,
	struct wattle_error *reterr);

/* Implemented in choose.c. Selects devices by a list such as "gpu-0", "GPU-8f2c", "gpu-0,package-1" or "gpus" (all GPUs
 * with such a limit that are visible to this program). In the order of the list, each device once; ret_chosen has room
 * for all. -ENODEV, -EINVAL (also for a repeated name, unless allow_repeats) with a message. */
int cap_devices_choose(struct cap_devices *devices, const struct wattle_env *env, const char *names, enum cap_kind what,
	bool allow_repeats, struct cap_device **ret_chosen, size_t *ret_n, struct wattle_error *reterr);

/* Reads the registers and updates current and enforced of `device`. -ENODEV: the device is gone; -EACCES, -EIO …; with
 * a message. */
int cap_read(struct cap_device *device, struct cap_setting *ret_setting, struct wattle_error *reterr);
/* Computes the register values for a limit of `value` (W, MHz). `before`: values before the first change by the current
 * owner. The result holds only the registers that the limit concerns; the others stay untouched. -ERANGE with a message
 * that gives the range. Writes nothing. */
int cap_plan(struct cap_device *device, const struct cap_setting *before, double value, struct cap_setting *ret_setting,
	struct wattle_error *reterr);
/* Writes the registers in order, skipping those that already hold the value. -EACCES (reterr states how to get access),
 * -ENODEV (gone), -ERANGE, -EIO. After an error some registers may have been written. */
int cap_write(struct cap_device *device, const struct cap_setting *setting, struct wattle_error *reterr);
// The setting after power-on. -ENODATA if the device does not report it.
int cap_default_setting(struct cap_device *device, const struct cap_setting *now, struct cap_setting *ret_setting,
	struct wattle_error *reterr);
// Path of the i-th file or folder below /sys that holds registers of the device; NULL: no more.
const char *cap_file_of(const struct cap_device *device, size_t i);
/* Moves values that this device cannot have had (1 uW, a switch of 7) to the nearest valid one. Use it on settings read
 * from a file. If the device states no range, limits from 1 W to the registers' maximum stay as they are. Returns
 * whether a value changed. */
bool cap_setting_bound(const struct cap_device *device, struct cap_setting *setting);
// The limit of a setting in W or MHz; NaN: none.
double cap_value_of(const struct cap_device *device, const struct cap_setting *setting);
// Whether a register that was set to `asked` may read back as `found`: hardware rounds (RAPL down to 1/8 W).
bool cap_field_matches(const struct cap_device *device, const char *field, int64_t asked, int64_t found);
// False: the device can't be read back (locked clocks), and every setting counts as set by wattle.
bool cap_reads_back(const struct cap_device *device);
