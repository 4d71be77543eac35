/* The interface between the sampler and the sensors that read hardware.
 *
 * A sensor is a `const struct sensor_ops` at the end of one file, with an entry in registry.c. It describes its domains as an
 * array of `struct domain` once at open, and then fills one row of DEVICE values per domain at every sample. It never prints,
 * never allocates after open, and knows only the pids of the target.
 *
 * CONTRIBUTING.md describes how to add a sensor. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cpu_temperature; // sensor/internal.h

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
extern const char *const domain_kind_names[]; // in enum order, NULL-terminated
const char *domain_kind_name(enum domain_kind kind); // "package", "core", … as in the report
int domain_kind_from_name(const char *name);         // enum domain_kind or -EINVAL
// Whether a domain of this kind adds to energy.total_j if it is not inside another domain that adds: true for packages, DRAM
// and GPUs. Other kinds (psys, core, node, gpu-memory …) are shown, not added. A package inside psys is therefore added.
bool domain_kind_adds_up(enum domain_kind kind);
/* Whether one domain adds to the total, for any list of domains: `find` returns the domain of a name (NULL for "" and unknown
 * names). */
struct domain_location {
	enum domain_kind kind;
	const char *inside; // as in struct domain
};
typedef bool domain_find(const void *domains, const char *name, struct domain_location *ret_location);
bool domain_adds_up(struct domain_location location, domain_find *find, const void *domains);
// Upper limit, with a wide margin, of the power of a domain of this kind; the default of domain.max_power_w.
double domain_kind_max_power_w(enum domain_kind kind);

// From strongest to weakest: a sum has the largest provenance of its parts.
enum provenance { PROVENANCE_MEASURED, PROVENANCE_DERIVED, PROVENANCE_ESTIMATED, PROVENANCE_KINDS };
extern const char *const provenance_names[]; // in enum order, NULL-terminated
const char *provenance_name(enum provenance provenance); // "measured", "derived", "estimated"
int provenance_from_name(const char *name);

/* Description of a metered domain, filled at open and constant except for its note. The sensor owns the array, which does not
 * move until close. Additional data (calibrations, observed periods) is stored by the module that adds it. Domains that can't
 * be read, or that lose to a better sensor, are also listed: `wattle sensors` shows them. */
struct domain {
	char name[48]; // "package-0", "dram-0", "gpu-0" …; unique among used domains
	enum domain_kind kind;
	char inside[48]; // name of the containing domain, "" if none
	char device[96]; // name of the hardware: "intel-rapl:0", "NVIDIA H100 80GB HBM3"
	char uuid[96];   // of GPUs; with a suffix, of domains that their driver meters as well; else ""
	int index;       // NVML index of GPUs, else socket or node number; -1: unknown
	enum provenance provenance;
	bool has_energy; // fills DEVICE_ENERGY_RAW (a raw counter, see below); else the analysis integrates DEVICE_POWER

	bool readable;    // can be read now
	bool unwanted;    // a GPU excluded by --gpus, --gpu-brand or the target's environment; never used
	bool used;        // sampled: readable, wanted, and not replaced by a better domain
	bool unmatched;   // the name is a guess that may cover several devices of the kind (a Cray counts all sockets in one):
			  // never used beside a domain of that kind from another sensor
	char why[160];    // if not used: short phrase with the reason
	char remedy[200]; // if not readable: command that enables reading; "" if there is none

	uint64_t energy_range_uj; // value at which the counter wraps (max_energy_range_uj); 0: 64 bits, never
	uint64_t resolution_uj;   // smallest step of the counter; 0: unknown
	// Median time between updates of the energy counter or power reading, measured or stated by the maker; 0: unknown.
	int64_t update_period_ns;
	int64_t update_jitter_ns;    // half the spread of the period (largest minus smallest seen); 0: unknown
	double relative_error;       // of the reading: from sensor gain or model; 0: not stated
	double max_power_w;          // plausible maximum, to distinguish a wrap from a reset; never 0 once the set is open
	uint64_t memory_total_bytes; // of GPUs, without the driver's reserved memory if that is reported; 0: unknown

	const struct sensor_calibration *calibration; // of a GPU's power sensor, owned by the set; NULL or gain 0: none

	/* Information that affects the interpretation but is in no figure: how processes were matched, that the device
	 * sleeps. Only its sensor may change it, during a reading. The sampler stores each new text as an event of kind
	 * "note". */
	char note[160];
};

/* Calibration of a GPU's power sensor from the command line or a stored file (gpu_gain.h). Readings remain as reported by the
 * hardware: true power or energy = domain_gain() times the reading. */
struct sensor_calibration {
	double gain, error; // factor; its relative error, half of a 95 % interval
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

// Observed update period of a device; update_period_ns and update_jitter_ns of the domain hold the initial values.
struct update_period {
	int64_t period_ns, jitter_ns;
};

/* The sampler's state at a reading. Borrowed for the call. */
struct sensor_context {
	int64_t t_ns;           // time of the reading
	int64_t system_busy_ns; // from the counters of /proc/stat; VALUE_MISSING if they could not be read
	int64_t system_idle_ns;
	pid_t main_pid;           // 0: no target (wattle sensors)
	const pid_t *target_pids; // ascending, including the root
	size_t n_target_pids;
	pid_t self_pid;
	const pid_t *all_pids; // all processes of the machine, ascending, if list_users is set; else NULL
	size_t n_all_pids;
	bool energy_only; // fill only DEVICE_ENERGY_RAW and DEVICE_ENERGY_TIME: a quick read to time counter updates
};
bool sensor_context_has_pid(const struct sensor_context *context, pid_t pid); // uses a binary search

struct gpu_roster;

/* Options from the command line; borrowed during open. */
struct sensor_options {
	const char *gpus;      // --gpus LIST or NULL
	const char *gpu_brand; // "nvidia", "amd", "intel" or NULL
	// The target's environment: CUDA_VISIBLE_DEVICES and related variables. NULL: not set.
	const char *cuda_visible_devices;
	const char *cuda_device_order;
	const char *hip_visible_devices;
	const char *rocr_visible_devices;
	const char *wall_meter;       // --wall-meter FILE or NULL; borrowed until close
	const char *const *gpu_gains; // each --gpu-gain INDEX=FACTOR±PERCENT, NULL-terminated; NULL: none
	bool list_users;              // users() will be called, and all_pids will be set
	bool describe_only;           // for `wattle sensors`: list everything, including GPUs hidden from the target
	int64_t calibrate_ns;         // maximum uninterrupted time to measure update periods at open; 0: none. Detecting a
				      // dead counter (AMD GPUs: 250 ms, perf in guests: 3 ms) may add to it
	struct gpu_roster *roster;    // set by sensor_set_open: numbers the GPUs of all sensors, evaluates --gpus
};

/* Use of one device by one process. A process with several entries, for example on several MIG instances, is the sum of
 * them. */
struct device_user {
	pid_t pid;               // local /proc pid; 0: unknown, or no local process
	double busy_percent;     // of the device's time; NaN: not reported
	int64_t memory_bytes;    // VALUE_MISSING: not reported
	double instance_percent; // fraction of the GPU's SM slices that belongs to this process; NaN: the GPU has no instances
};

struct sensor_ops {
	const char *name;  // "powercap", "nvml", "model": the `source` of its domains
	size_t state_size; // size of the zeroed state that the registry allocates

	/* Finds the sensor's domains. Returns 0 also if there are none: a machine without this hardware is normal. Returns a
	 * negative errno only for an invalid request (a --wall-meter that is no such file: -EINVAL with a message), which
	 * fails the opening of the whole set, or -ENOMEM. Hardware that exists but fails is a domain with readable == false
	 * and a reason. With describe_only, a sensor without its driver also has one such row, but only if its hardware may
	 * be present and the remedy applies. May take as long as the driver takes. Sets `used` of the domains that it offers
	 * for sampling. */
	int (*open)(void *state, const struct wattle_env *env, const struct sensor_options *options,
		struct wattle_error *reterr);
	/* The domains found. May be called after open, any number of times. The set completes them before other modules see
	 * them. */
	struct domain *(*domains)(void *state, size_t *ret_count);
	/* Takes one reading of every domain with `used` set: rows[i] belongs to domains[i] and is preset to VALUE_MISSING,
	 * which failed values keep. DEVICE_ENERGY_RAW is the raw hardware counter in µJ, before extension. DEVICE_ENERGY_TIME
	 * is set in two cases only. If the hardware provides the time of the counter's update (a time stamp that stays
	 * constant while the counter does), it is that time on CLOCK_MONOTONIC. If the helper read the counter, it is the
	 * time of that read, which may be before the sample or slightly after it. Must not block, allocate or fail: a device
	 * that fell off the bus leaves its row empty. Called only if there are domains. */
	void (*read)(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT]);
	/* Optional; NULL: users are never known. Users of domains[domain] at the last complete reading, target or not, if
	 * options.list_users was set at open. Returns NULL if unknown now; *ret_count 0: no users. Borrowed until the next
	 * read. */
	const struct device_user *(*users)(void *state, size_t domain, size_t *ret_count);
	/* Called after open, also after an open that failed halfway. */
	void (*close)(void *state);
};

extern const struct sensor_ops sensor_powercap, sensor_perf, sensor_hwmon, sensor_nvml, sensor_amdgpu, sensor_intel_gpu,
	sensor_cray, sensor_battery, sensor_wall, sensor_model;

/* All sensors in order of preference; NULL-terminated. */
extern const struct sensor_ops *const sensor_registry[];

/* The open sensors of a machine. Device i of the run is devices[i]. */
struct sensor_set {
	struct sensor_slot {
		const struct sensor_ops *ops;
		void *state;            // owned
		struct domain *domains; // owned by the sensor
		size_t n_domains;
		bool rests, rests_between; // set by the sampler: nothing to read at samples, at quick reads between them
	} slots[16];
	size_t n_slots;
	const struct domain **devices; // owned array: the used domains, in registry order
	const char **sources;          // owned array: ops->name of each device
	struct sensor_calibration *calibrations; // owned array, one per device; gain 0: none
	size_t n_devices;
	struct cpu_temperature *temperature; // owned: fills DEVICE_TEMPERATURE of packages; NULL: nothing to read
	int64_t (*rows)[DEVICE_COUNT];       // owned scratch buffer: n_domains rows of all sensors
	size_t n_rows;
	char gain_message[400]; // why the stored GPU calibration is not used; "" if it is, or if there is none
};

// Opens every sensor of the registry and decides which domains are used. If two sensors meter one domain, the earlier in the
// registry wins and the other gets `why`. The model is used only if no package is readable.
int sensor_set_open(struct sensor_set *set, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr);
void sensor_set_close(struct sensor_set *set);
const struct domain *sensor_set_find(const struct sensor_set *set, const char *name); // searches used domains; NULL: none
// Whether its energy is part of the total (energy.total_j of the report). Domains inside one that is counted are excluded.
bool sensor_set_adds_up(const struct sensor_set *set, const struct domain *domain);
// Reads all sensors; values of device i go to ret_rows[i]. Does not allocate.
void sensor_set_read(struct sensor_set *set, const struct sensor_context *context, int64_t (*ret_rows)[DEVICE_COUNT]);
// Users of devices[device] at the last reading, see sensor_ops.users.
const struct device_user *sensor_set_users(const struct sensor_set *set, size_t device, size_t *ret_count);
