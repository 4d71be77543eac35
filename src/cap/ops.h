/* A back end of cap/device.h: one kind of hardware that can be limited. Implemented by the files of this room that end
 * in a `const struct cap_ops`; called by device.c only. */
#pragma once

#include "cap/device.h"

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
	// False: it does not say.
	bool (*default_setting)(const struct cap_device *device, const struct cap_setting *now,
		struct cap_setting *ret_setting);
	double (*value_of)(const struct cap_device *device, const struct cap_setting *setting);
	// See cap_file_of. NULL: the back end writes no files of /sys.
	const char *(*file)(const struct cap_device *device, size_t i);
	// Unit of a register's value in W or MHz; 0: a switch, 0 or 1.
	double (*scale)(const char *field);
	bool zero_is_none; // a register value of 0 means no limit
	// What was set may read less than so much beside what was asked: the hardware's steps. NULL: 1, exactly.
	int64_t (*step)(const char *field);
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
