/* The contract between the sampler and whatever reads hardware.
 *
 * A sensor is a `const struct sensor_ops` at the end of one file, with an entry in registry.c. It describes what it
 * meters as an array of `struct domain` once at open, and then fills one row of DEVICE values per domain at every
 * sample. It never prints, never allocates after open, and knows nothing of the target but the list of its pids.
 *
 * To add one: CONTRIBUTING.md tells how. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cpu_temperature; // sensor/cpu_temperature.h

// Stored and printed by name, never by number.
enum domain_kind {
	DOMAIN_PACKAGE,
	DOMAIN_CORE,
	DOMAIN_UNCORE,
	DOMAIN_DRAM,
	DOMAIN_PSYS,
	DOMAIN_GPU,
	DOMAIN_NODE,
	DOMAIN_MODULE,
	DOMAIN_BATTERY,
	DOMAIN_WALL,
	DOMAIN_GPU_MEMORY,
	DOMAIN_KINDS
};
extern const char *const domain_kind_names[]; // in their order, NULL-terminated
const char *domain_kind_name(enum domain_kind kind); // "package", "core", … as in the report
int domain_kind_from_name(const char *name);         // enum domain_kind or -EINVAL
// Whether a domain of this kind enters energy.total_j when it lies inside no other domain that does: packages, DRAM
// and GPUs do; the other kinds (psys, core, node, gpu-memory …) are shown, not added. So a package inside psys is added.
bool domain_kind_adds_up(enum domain_kind kind);
/* Whether this one does, of whatever list of domains: `find` gives the one of a name ("" and unknown ones: false). */
struct domain_place {
	enum domain_kind kind;
	const char *inside; // as in struct domain
};
typedef bool domain_find(const void *domains, const char *name, struct domain_place *ret_place);
bool domain_adds_up(struct domain_place place, domain_find *find, const void *domains);
// Power that a domain of this kind never exceeds, generously; what domain.max_power_w becomes where a sensor left 0.
double domain_kind_max_power_w(enum domain_kind kind);

// From strongest to weakest: the provenance of a sum is the largest of its parts'.
enum provenance { PROVENANCE_MEASURED, PROVENANCE_DERIVED, PROVENANCE_ESTIMATED, PROVENANCE_KINDS };
extern const char *const provenance_names[]; // in their order, NULL-terminated
const char *provenance_name(enum provenance provenance); // "measured", "derived", "estimated"
int provenance_from_name(const char *name);

/* What a sensor meters: a description, filled at open and constant from then on but for its note; the sensor owns the array, it
 * does not move until close. What is added to it (calibrations, periods that are seen) lies with whoever adds it. Domains that
 * exist but can't be read, or lose to a better sensor, are listed too: `wattle sensors` shows them. */
struct domain {
	char name[48]; // "package-0", "dram-0", "gpu-0" …; unique among the used ones
	enum domain_kind kind;
	char inside[48]; // name of the domain that contains this one, "" if none
	char device[96]; // what a person would look for: "intel-rapl:0", "NVIDIA H100 80GB HBM3"
	char uuid[96];   // GPUs, and with a suffix what their driver meters beside them; "" else
	int index;       // NVML's index for GPUs, socket or node number else; -1 unknown
	enum provenance provenance;
	bool has_energy; // fills DEVICE_ENERGY_RAW (a raw counter, see below); else DEVICE_POWER is integrated by analysis

	bool readable;    // it can be read now
	bool unwanted;    // a GPU that --gpus, --gpu-brand or the target's environment leaves out; never used
	bool used;        // it is sampled: readable, wanted, and not the loser to a better one
	bool unmatched;   // its name is a guess, as it may stand for several devices of its kind (a Cray counts all
			  // sockets in one): never used beside one of that kind that another sensor meters
	char why[160];    // if not used: the reason, a short phrase
	char remedy[200]; // if not readable: the command that mends it; "" if nothing can

	uint64_t energy_range_uj; // the counter wraps after this (max_energy_range_uj); 0: 64 bits, never
	uint64_t resolution_uj;   // smallest step of the counter; 0: unknown
	// Median time between updates of the energy counter or power reading, measured or stated by the maker; 0: unknown.
	int64_t update_period_ns;
	int64_t update_jitter_ns;    // half of the spread of that time (largest minus smallest seen); 0: unknown
	double relative_error;       // of the reading itself: sensor gain, or the model's; 0: not stated
	double max_power_w;          // plausible maximum, to tell a wrap from a reset; never 0 once the set is open
	uint64_t memory_total_bytes; // GPUs: without what the driver reserves where it says so; 0 unknown

	const struct sensor_calibration *calibration; // of a GPU's power sensor, the set's; NULL or gain 0: none

	/* What a reader of the run must know and no figure tells: how processes were matched, that the device sleeps.
	 * Its sensor alone may change it while it reads; the sampler stores each new text as an event of kind "note". */
	char note[160];
};

/* What the command line or a stored calibration says of a GPU's power sensor (gpu_gain.h). Readings stay as the hardware gives them:
 * true power or energy = domain_gain() times the reading. */
struct sensor_calibration {
	double gain, error; // factor; relative error of it, half of a 95 % interval
	char source[64];    // "--gpu-gain", "wattle sensors --calibrate-gpu DATE"
};

static inline bool domain_is_calibrated(const struct domain *domain)
{
	return domain->calibration != NULL && domain->calibration->gain > 0;
}

static inline double domain_gain(const struct domain *domain)
{
	return domain_is_calibrated(domain) ? domain->calibration->gain : 1;
}

// How often a device updates its reading, as a reader has found it: what update_period_ns and update_jitter_ns state at first.
struct update_period {
	int64_t period_ns, jitter_ns;
};

/* What the sampler knows when it asks for readings. Borrowed for the call. */
struct sensor_context {
	int64_t t_ns;           // now
	int64_t system_busy_ns; // counters of /proc/stat, VALUE_MISSING if they could not be read
	int64_t system_idle_ns;
	pid_t main_pid;           // 0: no target (wattle sensors)
	const pid_t *target_pids; // ascending, the root included
	size_t n_target_pids;
	pid_t self_pid;
	const pid_t *all_pids; // of the whole machine, ascending; where list_users was asked for, else NULL
	size_t n_all_pids;
	bool energy_only; // fill DEVICE_ENERGY_RAW and DEVICE_ENERGY_TIME and leave out the rest: a quick look for the
			  // moment at which a counter is updated, between two samples
};
bool sensor_context_has_pid(const struct sensor_context *context, pid_t pid); // binary search

struct gpu_roster;

/* What was asked for on the command line; borrowed during open. */
struct sensor_options {
	const char *gpus;      // --gpus LIST or NULL
	const char *gpu_brand; // "nvidia", "amd", "intel" or NULL
	// The target's environment, as it will see it: CUDA_VISIBLE_DEVICES and its kin. NULL: not set.
	const char *cuda_visible_devices;
	const char *cuda_device_order;
	const char *hip_visible_devices;
	const char *rocr_visible_devices;
	const char *wall_meter;       // --wall-meter FILE or NULL; borrowed until close
	const char *const *gpu_gains; // each --gpu-gain INDEX=FACTOR±PERCENT, NULL-terminated; NULL: none
	bool list_users;              // users() will be asked, and all_pids be told
	bool describe_only;           // wattle sensors: list everything, GPUs hidden from the target too
	int64_t calibrate_ns;         // at most this much time may go into measuring update periods at open; 0: none.
				      // To find a counter dead (AMD GPUs: 250 ms, perf in guests: 3 ms) may take more
	struct gpu_roster *roster;    // set by sensor_set_open: numbers GPUs over all sensors, answers --gpus
};

/* What one process does on one device. A process that stands there more than once, on several MIG instances say, has as many
 * of these; they add up. */
struct device_user {
	pid_t pid;               // as /proc here numbers it; 0: nobody can tell which process here it is, if any
	double busy_percent;     // of the device's time; NaN: not told
	int64_t memory_bytes;    // VALUE_MISSING: not told
	double instance_percent; // the part of a GPU's SM slices that is this process's; NaN: the GPU is not cut into instances
};

struct sensor_ops {
	const char *name;  // "powercap", "nvml", "model": the `source` of its domains
	size_t state_size; // the registry allocates zeroed state of this size

	/* Finds its domains. 0 also when there are none: a machine without this hardware is normal. Negative errno only
	 * for a wrong request (a --wall-meter that is no such file: -EINVAL with a sentence), which fails the opening of
	 * the whole set, or -ENOMEM. What exists but fails is a domain with readable == false and a reason. With
	 * describe_only a sensor whose driver is missing has such a row too, one, and only where its hardware may be
	 * there and the remedy means something. May take as long as the driver takes. Sets `used` of the domains it
	 * would sample. */
	int (*open)(void *state, const struct wattle_env *env, const struct sensor_options *options,
		struct wattle_error *reterr);
	/* The domains found; called after open, any number of times. The set completes them before anybody else sees them. */
	struct domain *(*domains)(void *state, size_t *ret_count);
	/* One reading of every domain with `used` set: rows[i] belongs to domains[i], preset to VALUE_MISSING, and what
	 * can't be read stays so. DEVICE_ENERGY_RAW is the raw counter in µJ as the hardware gives it, before extension.
	 * DEVICE_ENERGY_TIME only where the hardware itself says when it updated the counter (a time stamp that stands
	 * still while the counter does), converted to CLOCK_MONOTONIC; or where the helper read it for us, when that
	 * was, which may be before the sample or a little after it. Must not block, allocate or fail: a device that
	 * fell off the bus just leaves its row empty. Only called where there are domains. */
	void (*read)(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT]);
	/* Optional; NULL: it never knows. Who was on domains[domain] at the last complete reading, target or not, where
	 * options.list_users was set at open. NULL: unknown now; *ret_count 0: nobody. Borrowed until the next read. */
	const struct device_user *(*users)(void *state, size_t domain, size_t *ret_count);
	/* After open, also after one that failed half-way. */
	void (*close)(void *state);
};

extern const struct sensor_ops sensor_powercap, sensor_perf, sensor_hwmon, sensor_nvml, sensor_amdgpu, sensor_intel_gpu,
	sensor_cray, sensor_battery, sensor_wall, sensor_model;

/* All sensors in order of preference; NULL-terminated. */
extern const struct sensor_ops *const sensor_registry[];

/* The opened sensors of a machine, side by side. Device i of the run is devices[i]. */
struct sensor_set {
	struct sensor_slot {
		const struct sensor_ops *ops;
		void *state;            // owned
		struct domain *domains; // the sensor's
		size_t n_domains;
		bool rests, rests_between; // the sampler's: nothing of it is wanted at samples, at looks between them
	} slots[16];
	size_t n_slots;
	const struct domain **devices; // owned array: the used domains, in registry order
	const char **sources;          // owned array: ops->name of each device
	struct sensor_calibration *calibrations; // owned array: of each device; gain 0: none
	size_t n_devices;
	struct cpu_temperature *temperature; // owned: fills DEVICE_TEMPERATURE of packages; NULL: nothing to read
	int64_t (*rows)[DEVICE_COUNT];       // owned scratch: sum of all n_domains
	size_t n_rows;
	char gain_note[400]; // why the stored calibration of GPUs is not used; "" it is, or there is none
};

// Opens every sensor of the registry and settles which domains are used: when two sensors meter one domain the
// earlier in the registry wins, the loser gets `why`; the model is used only if no package is readable.
int sensor_set_open(struct sensor_set *set, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr);
void sensor_set_close(struct sensor_set *set);
const struct domain *sensor_set_find(const struct sensor_set *set, const char *name); // of the used ones; NULL: none
// Whether its energy enters the total, as energy.total_j of the report: what lies in a domain that does would count twice.
bool sensor_set_adds_up(const struct sensor_set *set, const struct domain *domain);
// Reads all; values of device i go to ret_rows[i]. No allocation.
void sensor_set_read(struct sensor_set *set, const struct sensor_context *context, int64_t (*ret_rows)[DEVICE_COUNT]);
// Who was on devices[device] at the last reading, as sensor_ops.users.
const struct device_user *sensor_set_users(const struct sensor_set *set, size_t device, size_t *ret_count);
