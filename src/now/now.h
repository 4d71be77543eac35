/* What this machine does now, for whoever looks at it live: `wattle top` and `wattle serve`. Sensors and processes are read here as
 * the recorder reads them, but nothing is stored; what was is kept as a history of fixed length. One thread, no timer of its own: the
 * caller looks when it wants to, and gets the time since the look before.
 *
 * Attribution is that of reports (docs/accuracy.md, --attribution busy), over all processes of the machine: package energy by
 * share of busy CPU time, DRAM by share of resident memory, GPUs by share of SM time, else of memory. What no process has is in
 * `idle` and `unattributed`. Units are in the names; unknown doubles are NaN, unknown integers VALUE_MISSING. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "metric/metric.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { NOW_COMMAND_SIZE = 256, NOW_HISTORY = 600, NOW_GROUP_SIZE = 256 };

// What processes are summed up by.
enum now_grouping {
	NOW_JOBS,    // of a scheduler: Slurm, PBS, LSF …
	NOW_CGROUPS, // as /proc/PID/cgroup shows them: a systemd unit, a container
	NOW_GROUPINGS
};

// What is divided among processes, each by a measure of its own.
enum now_resource { NOW_CPU, NOW_DRAM, NOW_GPU, NOW_RESOURCES };

// Of which processes the arguments are shown, without secrets (base/redact.h); of the others the program's name.
enum now_arguments {
	NOW_ARGUMENTS_ALL,
	NOW_ARGUMENTS_OWN, // of this user's; of none if the user is root: those are the system's daemons
	NOW_ARGUMENTS_NONE
};
bool now_shows_arguments(enum now_arguments which, uid_t uid); // uid -1: not known

struct now_options {
	const struct wattle_env *env;         // borrowed until close
	const struct sensor_options *sensors; // borrowed during open; NULL: all that there is
	pid_t pid;                            // whose tree is marked as the target; 0: none
	size_t most_processes; // in the list, those with the most power, CPU time, memory; 0: all. Sums are over all anyway
	size_t history;        // of each domain and total, at most NOW_HISTORY; 0: none
	enum now_arguments arguments;
	bool groups[NOW_GROUPINGS];  // which of them are wanted
	const struct now_kept *kept; // what an earlier now_keep told: counting goes on from there; borrowed during open
	size_t n_kept;
	bool same_boot; // … and hardware counters too, which have not begun anew meanwhile
	const struct now_kept_process *kept_processes; // ascending by pid; borrowed during open
	size_t n_kept_processes;
};

struct now_history {   // a ring of the last looks
	float *values; // `room` of them; NaN unknown
	size_t n, room, next;
};
// The value `ago` looks before the last one (0: the last); NaN where there was none.
double now_history_at(const struct now_history *history, size_t ago);

struct now_domain {
	const struct domain *domain; // borrowed from the sensor: name, kind, inside, device, provenance …
	const char *source;          // "powercap", "nvml" …
	bool in_total;               // it enters total_w
	int64_t energy_uj; // since counting began, extended to 64 bits, never falls; from power where there is no counter
	double power_w;    // over the time since the look before; of a counter between its own updates
	double cap_w;      // limit in force
	double target_w;   // attributed to the tree of options.pid
#define DEVICE_LIVE(id, member, ...) double member;
#include "metric/metrics.def"
	double memory_total_bytes;
	int64_t throttle_bits; // NVML's mask; VALUE_MISSING unknown
	uint32_t wraps, resets, gaps;
	struct now_history power_history_w, utilization_history_percent;
};

struct now_process {
	pid_t pid, ppid;
	uid_t uid;            // (uid_t)-1: unknown
	int64_t start_ns;     // CLOCK_MONOTONIC
	uint64_t start_ticks; // since boot; with the pid this is the identity of a process
	char command
		[NOW_COMMAND_SIZE]; // its command line, or comm in brackets; control characters are '?', what is cut ends in "…"
	char state;                 // as in /proc/PID/stat
	bool is_target;             // in the tree of options.pid
	bool is_own;                // this process
	bool is_gone;     // ended since the look before: shown once, with what it used until then where that is known
	double cpu_cores; // over the time since the look before; 1 is one core busy
	int64_t cpu_ns, rss_bytes, threads;
	double gpu_percent;       // SM time, summed over GPUs; 100 is one GPU busy; NaN: unknown, or on no GPU
	int64_t gpu_memory_bytes; // likewise summed; VALUE_MISSING
	double cpu_w, dram_w, gpu_w, power_w; // attributed; power_w is their sum, of what is known
	double energy_j; // attributed since it was first seen, or on from kept_processes; NaN: nothing meters what it uses
};

struct now_group {                 // a job, or a cgroup; one with no processes is a free row
	char name[NOW_GROUP_SIZE]; // the job's id; the cgroup's path, what is cut begins with "…"
	uid_t uid;                 // of a job: whose it is; (uid_t)-1: not known (yet)
	int64_t processes;
	double added_j[NOW_RESOURCES]; // attributed to its processes since the look before
	double added_cpu_s;
	double power_w, cpu_cores; // NaN unknown
	double gpu_percent;        // summed over GPUs; NaN: it is on none, or unknown
	int64_t rss_bytes, gpu_memory_bytes;
};

struct now_added { // energy of one look by whose it is: the parts are the total
	double total_j, target_j, others_j, own_j, idle_j, unattributed_j;
};

// What counting can go on from in another process: a domain as it was.
struct now_kept {
	char name[48], uuid[96], source[32]; // as of struct domain
	int64_t energy_uj;
	uint32_t wraps, resets, gaps;
	bool has_raw; // the hardware's counter was read: its value and when
	uint64_t last_raw;
	int64_t last_t_ns, last_change_ns;
	double mean_power_w, mean_span_s;
};

struct now_kept_process { // of this boot: energy that it was attributed earlier, if it is still the same process
	pid_t pid;
	uint64_t start_ticks;
	double energy_j;
};

struct now_sum { // of the watts of all domains in the total: each watt stands in one of them; NaN: none is known
	double target_w, others_w, own_w, idle_w, unattributed_w;
};

struct now {
	int64_t t_ns, wall_ns;
	double dt_s;   // since the look before; NaN: this is the first one
	int64_t cores; // VALUE_MISSING unknown
	double busy_cores;
	int64_t memory_total_bytes, memory_used_bytes;
	struct now_domain *domains; // by kind and number; they stay where they are until close
	size_t n_domains;
	/* Those that live, ascending by pid, then those that are gone, likewise (all in no order where most_processes leaves some out); until
	 * the next look. */
	struct now_process *processes;
	size_t n_processes;
	int64_t processes_seen, threads_seen; // of the whole machine, listed or not
	double total_w;                       // outermost domains that do not overlap, as energy.total_j of the report
	int64_t total_energy_uj;              // since counting began; VALUE_MISSING: no domain is in it
	enum provenance provenance;           // of the total: the weakest part's
	struct now_sum sum;
	/* Of the domains in the total, since the look before. What a counter tells of the time before the first look, when counting
	 * went on from an earlier process, is unattributed and comes with the second. */
	struct now_added added[NOW_RESOURCES];
	bool exists[NOW_RESOURCES];              // a domain in the total meters it
	struct now_group *groups[NOW_GROUPINGS]; // in no order; until the next look
	size_t n_groups[NOW_GROUPINGS];
	struct now_history total_history_w, target_history_w, cpu_history_cores, memory_history_bytes;
	double own_cpu_percent; // what looking costs, of one core, since open
	double own_cpu_s;       // CPU time of this process since it started
	int64_t own_rss_bytes;
	double target_ram_bytes; // private and shared memory of the target, shared once; NaN unknown
	bool target_is_gone;     // the process of options.pid has ended
	const char *problem;     // why there is no energy at all, a sentence; NULL: there is some
};

struct now_state;
// Opens the sensors and takes the first look, which has no powers yet. -ENOENT: no such pid, with a sentence; -ENOMEM.
int now_open(const struct now_options *options, struct now_state **ret_state, struct wattle_error *reterr);
void now_close(struct now_state *state); // NULL allowed
// How often the caller will look, from now on: power that is read so rarely is joined to energy all the same.
void now_set_interval(struct now_state *state, int64_t interval_ns);
// Looks, and lends the result until the next call. Never fails: what can't be read is unknown.
const struct now *now_look(struct now_state *state);
// How far domain i has counted. A look later it is something else.
void now_keep(const struct now_state *state, size_t i, struct now_kept *ret_kept);
/* Who comes first in a list of those that use most: by power, CPU time, memory; the unknown last, then by pid. For qsort, of two
 * processes. */
int now_compare_use(const struct now_process *left, const struct now_process *right);
