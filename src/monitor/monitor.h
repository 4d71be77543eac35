/* Current energy and resource use of this machine, for `wattle top` and `wattle serve`. Reads sensors and processes as the
 * recorder does, but stores only a history of fixed length. Single-threaded, without a timer: the caller decides when
 * to take samples, and each sample covers the time since the previous one.
 *
 * Attribution is that of reports (docs/accuracy.md, --attribution busy), over all processes of the machine: package energy
 * by share of busy CPU time, DRAM by share of resident memory, GPUs by share of SM time, else of memory. Power attributed
 * to no process is in `idle` and `unattributed`.
 *
 * Units are in the names; unknown doubles are NaN, unknown integers VALUE_MISSING. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "metric/metric.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MONITOR_COMMAND_SIZE = 256, MONITOR_HISTORY = 600, MONITOR_GROUP_SIZE = 256 };

// Groupings of processes.
enum monitor_grouping {
	MONITOR_JOBS,    // of a scheduler: Slurm, PBS, LSF …
	MONITOR_CGROUPS, // from /proc/PID/cgroup: a systemd unit, a container
	MONITOR_GROUPINGS
};

// Resources whose energy is divided among processes, each by its own measure.
enum monitor_resource { MONITOR_CPU, MONITOR_DRAM, MONITOR_GPU, MONITOR_RESOURCES };

// Processes whose arguments are shown, with secrets redacted (base/redact.h); of others only the program name is shown.
enum monitor_arguments {
	MONITOR_ARGUMENTS_ALL,
	MONITOR_ARGUMENTS_OWN, // of this user's processes; none if the user is root, whose processes are system daemons
	MONITOR_ARGUMENTS_NONE
};
bool monitor_shows_arguments(enum monitor_arguments which, uid_t uid); // uid -1: unknown

struct monitor_options {
	const struct wattle_env *env;         // borrowed until close
	const struct sensor_options *sensors; // borrowed during open; NULL: all sensors
	pid_t pid;                            // root of the target process tree; 0: none
	size_t max_processes; // list limit: processes with the most power, CPU time, memory; 0: all. Sums include all processes
	size_t history; // values per domain and total, at most MONITOR_HISTORY; 0: none
	enum monitor_arguments arguments;
	bool groups[MONITOR_GROUPINGS]; // requested groupings
	const struct monitor_kept
		*kept; // from an earlier monitor_keep: counters continue from it; borrowed during open
	size_t n_kept;
	bool same_boot; // true: hardware counters continue too, because the machine has not rebooted
	const struct monitor_kept_process *kept_processes; // ascending by pid; borrowed during open
	size_t n_kept_processes;
};

struct monitor_history { // ring buffer of the last samples
	float *values; // `room` values; NaN: unknown
	size_t n, capacity, next;
};
// The value `ago` samples before the last one (0: the last); NaN if there is none.
double monitor_history_at(const struct monitor_history *history, size_t ago);

struct monitor_domain {
	const struct domain *domain; // borrowed from the sensor: name, kind, inside, device, provenance …
	const char *source;          // "powercap", "nvml" …
	bool in_total;               // part of total_w
	int64_t energy_uj; // since counting began; 64 bits, never decreases; integrated from power without a counter
	double power_w;    // mean since the previous sample; for counters between their updates
	double cap_w;      // power limit in force
	double target_w;   // attributed to the process tree of options.pid
#define DEVICE_LIVE(id, member, ...) double member;
#include "metric/metrics.def"
	double memory_total_bytes;
	int64_t throttle_bits; // NVML's mask; VALUE_MISSING: unknown
	uint32_t wraps, resets, gaps;
	struct monitor_history power_history_w, utilization_history_percent;
};

struct monitor_process {
	pid_t pid, ppid;
	uid_t uid;            // (uid_t)-1: unknown
	int64_t start_ns;     // CLOCK_MONOTONIC
	uint64_t start_ticks; // since boot; identifies a process together with the pid
	char command
		[MONITOR_COMMAND_SIZE]; // command line, or comm in brackets; control characters become '?'; "…" marks truncation
	char state;                 // as in /proc/PID/stat
	bool is_target;             // in the tree of options.pid
	bool is_own;                // this process
	bool is_gone;     // ended since the previous sample; listed once, with its final use if known
	double cpu_cores; // mean since the previous sample; 1: one core busy
	int64_t cpu_ns, rss_bytes, threads;
	double gpu_percent;       // SM time, summed over GPUs; 100: one GPU busy; NaN: unknown, or on no GPU
	int64_t gpu_memory_bytes; // summed over GPUs; VALUE_MISSING: unknown, or on no GPU
	double cpu_w, dram_w, gpu_w, power_w; // attributed; power_w is the sum of the known ones
	double energy_j; // attributed since first seen, or continued from kept_processes; NaN: no sensor measures its resources
};

struct monitor_group {                 // a job or a cgroup; an entry without processes is free
	char name[MONITOR_GROUP_SIZE]; // job id, or cgroup path; a truncated path begins with "…"
	uid_t uid;                 // owner of a job; (uid_t)-1: unknown (yet)
	int64_t processes;
	double added_j[MONITOR_RESOURCES]; // J, attributed to its processes since the previous sample
	double added_cpu_s;
	double power_w, cpu_cores; // NaN: unknown
	double gpu_percent;        // summed over GPUs; NaN: on no GPU, or unknown
	int64_t rss_bytes, gpu_memory_bytes;
};

struct monitor_added { // energy of one sample by consumer; the parts add up to total_j
	double total_j, target_j, others_j, own_j, idle_j, unattributed_j;
};

// State of a domain from which another process can continue counting.
struct monitor_kept {
	char name[48], uuid[96], source[32]; // as of struct domain
	int64_t energy_uj;
	uint32_t wraps, resets, gaps;
	bool has_raw; // last_raw and its times are valid
	uint64_t last_raw;
	int64_t last_t_ns, last_change_ns;
	double mean_power_w, mean_span_s;
};

struct monitor_kept_process { // J attributed to a process of this boot by an earlier server; valid if pid and start_ticks match
	pid_t pid;
	uint64_t start_ticks;
	double energy_j;
};

struct monitor_sum { // power of all domains in the total, each watt in one member; NaN: none is known
	double target_w, others_w, own_w, idle_w, unattributed_w;
};

struct monitor_sample {
	int64_t t_ns, wall_ns;
	double dt_s;   // since the previous sample; NaN: first sample
	int64_t cores; // VALUE_MISSING: unknown
	double busy_cores;
	int64_t memory_total_bytes, memory_used_bytes;
	struct monitor_domain *domains; // by kind and number; addresses are stable until close
	size_t n_domains;
	/* Live processes, ascending by pid, then ended ones, likewise; unordered if max_processes leaves some out. Valid
	 * until the next sample. */
	struct monitor_process *processes;
	size_t n_processes;
	int64_t processes_seen, threads_seen; // of the whole machine, listed or not
	double total_w;                       // outermost domains without overlap, as energy.total_j of the report
	int64_t total_energy_uj;              // since counting began; VALUE_MISSING: the total has no domain
	enum provenance provenance;           // of the total: that of its weakest part
	struct monitor_sum sum;
	/* Energy of the domains in the total since the previous sample. If counting continues from an earlier process,
	 * energy used before the first sample is unattributed and included in the second sample. */
	struct monitor_added added[MONITOR_RESOURCES];
	bool exists[MONITOR_RESOURCES];                  // a domain in the total measures it
	struct monitor_group *groups[MONITOR_GROUPINGS]; // unordered; valid until the next sample
	size_t n_groups[MONITOR_GROUPINGS];
	struct monitor_history total_history_w, target_history_w, cpu_history_cores, memory_history_bytes;
	double own_cpu_percent; // measurement overhead since open, percent of one core
	double own_cpu_s;       // CPU time of this process since it started
	int64_t own_rss_bytes;
	double target_ram_bytes; // private memory of the target plus shared memory counted once; NaN: unknown
	bool target_is_gone;     // the process of options.pid has ended
	const char *problem;     // why no energy is measured; NULL: some is
};

struct monitor;
// Opens the sensors and takes the first sample, which has no power values yet. -ENOENT: no such pid, *reterr is set; -ENOMEM.
int monitor_open(const struct monitor_options *options, struct monitor **ret_state, struct wattle_error *reterr);
void monitor_close(struct monitor *state); // NULL allowed
// Sets the caller's sampling interval. Power readings that are this far apart are still integrated to energy.
void monitor_set_interval(struct monitor *state, int64_t interval_ns);
// Takes a sample; the result is borrowed until the next call. Never fails: unreadable values are unknown.
const struct monitor_sample *monitor_take_sample(struct monitor *state);
// Returns the counting state of domain i as of the last sample.
void monitor_keep(const struct monitor *state, size_t i, struct monitor_kept *ret_kept);
/* Orders processes by use for qsort: power, CPU time, memory, descending; unknown values last; then by pid. */
int monitor_compare_use(const struct monitor_process *left, const struct monitor_process *right);
