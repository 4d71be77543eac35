/* Internal interfaces of the live monitor. First: history of one value over the last samples. */
#pragma once

#include "base/buf.h"
#include "base/env.h"
#include "base/file.h"
#include "energy/shares.h"
#include "energy/track.h"
#include "monitor/monitor.h"
#include "process/machine.h"
#include "process/tree.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

int monitor_history_open(struct monitor_history *history,
	size_t capacity); // room: number of values, at most MONITOR_HISTORY; 0: none. -ENOMEM
void monitor_history_close(struct monitor_history *history);
void monitor_history_add(struct monitor_history *history, double value);

/* Long-term power limits of CPU packages, from the powercap files next to the counters. (GPUs report theirs with each
 * reading.) */

struct package_limit {
	bool exists;
	struct file_kept limit, enabled;
};

// Other domains have no limit. The caller closes *limit in every case.
void package_limit_open(struct package_limit *limit, const struct wattle_env *env, const struct domain *domain,
	const char *source);
void package_limit_close(struct package_limit *limit);
double package_limit_w(struct package_limit *limit); // NaN: not in force, or not readable

/* Memory use of the target at each sample: private memory plus shared memory counted once. Uses the recorder's method: the
 * last reading, carried forward between readings (process/memory.h). */

struct target_ram;

// NULL: no memory, or no such process.
struct target_ram *target_ram_open(const struct wattle_env *env, pid_t pid);
void target_ram_close(struct target_ram *ram);                  // NULL allowed, here and in target_ram_sample
double target_ram_sample(struct target_ram *ram, int64_t t_ns); // bytes; NaN: unknown

/* Scheduler job and cgroup of a process. */

struct job_lookup_result {
	char names[MONITOR_GROUPINGS][MONITOR_GROUP_SIZE]; // "": none, or unknown
	uid_t job_uid;                             // owner of the job, if reported; (uid_t)-1: unknown
};

/* Reads /proc/PID/cgroup. If that names no job, reads /proc/PID/environ, which is readable by the same user and root only.
 * scratch: JOB_LOOKUP_SCRATCH bytes. False: nothing was readable, and all of *ret is unknown. */
enum { JOB_LOOKUP_SCRATCH = 1 << 16 };
bool job_lookup_find(const struct wattle_env *env, pid_t pid, bool wants_job, char *scratch,
	struct job_lookup_result *ret);

/* ---- pure functions ---- */

// text: content of /proc/PID/cgroup, modified in place.
void job_lookup_read_cgroups(char *text, struct job_lookup_result *ret);
// text: content of /proc/PID/environ, NUL-terminated variables.
void job_lookup_read_environment(const char *text, size_t size, struct job_lookup_result *ret);

/* The sensors of the machine as domains whose addresses are stable across samples. */

struct domain_table {
	struct sensor_set sensors;
	int64_t (*rows)[DEVICE_COUNT]; // owned: device rows of the last sample, one for each device of the set
	struct energy_track *tracks;   // owned: one for each device of the set
	struct monitor_domain *domains; // owned: sorted by kind and number
	struct package_limit *limits;  // owned: one for each of `domains`
	size_t *device_of;             // owned: domains[i] is device device_of[i] of the set
	size_t n;
	int64_t suspended_ns; // total suspended time at the last sample
	char problem[480];    // "": energy is measured
};

// Errors as sensor_set_open; -ENOMEM. The caller closes *table in every case.
int domain_table_open(struct domain_table *table, const struct monitor_options *options, struct wattle_error *reterr);
void domain_table_keep(const struct domain_table *table, size_t i, struct monitor_kept *ret_kept);
void domain_table_close(struct domain_table *table);
// Reads all sensors and fills the domains except attributed values.
void domain_table_sample(struct domain_table *table, const struct wattle_env *env,
	const struct sensor_context *context);

/* All processes of the machine across samples: use per interval, new and ended processes.
 *
 * An open /proc/PID/stat refers to one process for good (reads give ESRCH after it has ended), and reading it again costs
 * half of opening it. The files are therefore kept open within the limit of open files. */

struct process_row { // one process during its lifetime
	struct monitor_process now;
	char comm[PROCESS_NAME_SIZE];
	int64_t own_ns, children_ns; // CPU time at the last sample
	/* CPU time since the previous sample: the process's own, plus that of children it has waited for since then that
	 * no sample has counted. VALUE_MISSING: unknown. */
	int64_t used_ns, late_ns; // late_ns: the children's part of used_ns
	int64_t counted_ns;       // CPU time of children that have ended since, as counted in earlier samples
	int stat_fd;              // owned; -1: opened at each sample
	bool is_new, is_cmdline_known;
	double added_j[MONITOR_RESOURCES]; // J, attributed since the previous sample
	uint32_t group[MONITOR_GROUPINGS]; // index + 1 in the group table; 0: none, or unknown
	uint32_t n_lookups;                // number of samples at which its groups could be looked up
};

struct process_table {
	const struct wattle_env *env; // borrowed
	struct process_units units;
	int folder_fd; // owned if is_open: /proc
	bool is_open, keeps_files;
	enum monitor_arguments arguments;
	pid_t own_pid, target_pid; // pids as /proc numbers them; 0: absent
	bool target_is_gone;
	struct process_row *rows; // owned; ascending by pid; of the last sample
	size_t n, capacity;
	struct process_row *old; // owned: rows of the previous sample while a new one is taken
	size_t n_old, old_capacity;
	struct process_row *ended; // owned: processes that ended since the previous sample
	size_t n_ended, ended_capacity;
	size_t n_files, max_files;
	const struct monitor_kept_process *kept; // borrowed during the first sample
	size_t n_kept;
	int64_t last_t_ns; // time of the previous sample; VALUE_MISSING: none yet
	int64_t threads, own_total_ns;
	char *text;       // owned scratch
	struct buf shown; // scratch: the displayed command line of one process
};

// -ENOENT: options->pid does not exist, *reterr is set; -ENOMEM. The caller closes *table in every case.
int process_table_open(struct process_table *table, const struct monitor_options *options, struct wattle_error *reterr);
void process_table_close(struct process_table *table);
/* Takes one sample. busy_ns: CPU time of the whole machine since the previous sample, an upper bound of the sum over
 * processes; VALUE_MISSING: unknown. Never fails: without memory for more rows, the last processes are left out. */
void process_table_sample(struct process_table *table, int64_t t_ns, int64_t busy_ns);
struct process_row *process_table_find(const struct process_table *table, pid_t pid); // NULL: not found

/* ---- shared between the files of process_table ---- */

struct process_row *process_rows_find(struct process_row *rows, size_t n, pid_t pid); // ascending by pid; NULL: not found
// process_tree.c: adds CPU time of ended children to used_ns; marks new members of the target's process tree.
void process_tree_count(struct process_table *table, int64_t busy_ns);
void process_tree_mark_target(struct process_table *table);
// cmdline.c: fills command and uid from /proc/PID/cmdline and status.
void cmdline_read(struct process_table *table, const char *comm, struct monitor_process *process);
// Pure function: joins the NUL-separated arguments into one line. False if there are none (a kernel thread, a zombie).
bool cmdline_join(const char *words, size_t size, char *out, size_t out_size);

/* Sums of processes by job and by cgroup. */

struct group_table {
	const struct wattle_env *env; // borrowed
	bool wanted[MONITOR_GROUPINGS];
	struct monitor_group *groups
		[MONITOR_GROUPINGS]; // owned; process_row.group: index + 1 into it; free entries have no processes
	size_t n[MONITOR_GROUPINGS], capacity[MONITOR_GROUPINGS];
	char *scratch; // owned; NULL: no grouping requested
};

int group_table_open(struct group_table *table, const struct monitor_options *options); // -ENOMEM
void group_table_close(struct group_table *table);
// Call after the processes are read. Looks up the groups of new processes and rechecks a few others, because processes can
// move.
void group_table_update(struct group_table *table, struct process_table *processes);
// Call after the attribution.
void group_table_sum(struct group_table *table, const struct process_table *processes);

/* Attribution of power to processes, as in reports (energy/shares.h), for all processes of the machine and one sample.
 * Pure: reads and fills the two tables. */

struct attribution_machine {
	int64_t busy_ns;           // CPU time since the previous sample, all cores; VALUE_MISSING: unknown
	int64_t memory_used_bytes; // VALUE_MISSING: unknown
};

enum monitor_resource attribution_resource(enum domain_kind kind); // resource that a domain of this kind measures

struct attributed_energy { // over the domains in the total
	struct monitor_sum sum;
	struct monitor_added added[MONITOR_RESOURCES];
	bool exists[MONITOR_RESOURCES];
};

// Fills the attributed values: power, GPU use and energy of each process, and target_w of each domain.
void attribute_power(struct domain_table *domains, struct process_table *processes,
	const struct attribution_machine *machine, struct attributed_energy *ret_divided);

/* ---- attribution_gpu.c, for attribution.c ---- */

// Call before the first GPU of a sample: clears the GPU use of all processes.
void attribute_gpu_begin(struct process_table *processes);
// One GPU: adds to gpu_percent, gpu_memory_bytes, gpu_w and energy_j of its users.
struct shares attribute_gpu(struct domain_table *domains, size_t i, struct process_table *processes);
