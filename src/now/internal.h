/* What a figure was at the last looks. */
#pragma once

#include "base/buf.h"
#include "base/env.h"
#include "base/file.h"
#include "energy/shares.h"
#include "energy/track.h"
#include "now/now.h"
#include "process/machine.h"
#include "process/tree.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

int now_history_open(struct now_history *history, size_t room); // at most NOW_HISTORY; 0: none. -ENOMEM
void now_history_close(struct now_history *history);
void now_history_add(struct now_history *history, double value);

/* The long-term power limits of CPU packages, which the kernel has beside their counters. (GPUs tell theirs with each reading.) */

struct package_limit {
	bool exists;
	struct file_kept limit, enabled;
};

// Of any other domain there is none. *limit is to be closed in every case.
void package_limit_open(struct package_limit *limit, const struct wattle_env *env, const struct domain *domain,
	const char *source);
void package_limit_close(struct package_limit *limit);
double package_limit_w(struct package_limit *limit); // NaN: none is in force, or it can't be read

/* RAM of the target, private memory and shared memory once, from look to look: as a recording has it at its last sample, carried
 * forward between readings (process/memory_sample.h). */

struct target_ram;

// NULL: no memory, or no such process.
struct target_ram *target_ram_open(const struct wattle_env *env, pid_t pid);
void target_ram_close(struct target_ram *ram);                // NULL allowed, here and below
double target_ram_look(struct target_ram *ram, int64_t t_ns); // bytes; NaN unknown

/* To which job of a scheduler and to which cgroup a process belongs. */

struct belonging {
	char names[NOW_GROUPINGS][NOW_GROUP_SIZE]; // ""; none, or not known
	uid_t job_uid;                             // whose the job is, where that is told; (uid_t)-1
};

/* Reads /proc/PID/cgroup, and where that tells of no job /proc/PID/environ, which only the same user and root may. scratch: of
 * BELONG_SCRATCH bytes. False: nothing could be read, and *ret is all unknown. */
enum { BELONG_SCRATCH = 1 << 16 };
bool belong_find(const struct wattle_env *env, pid_t pid, bool wants_job, char *scratch, struct belonging *ret);

/* ---- pure halves ---- */

// The lines of /proc/PID/cgroup, changed in place.
void belong_read_cgroups(char *text, struct belonging *ret);
// The variables of /proc/PID/environ, a NUL after each.
void belong_read_environment(const char *text, size_t size, struct belonging *ret);

/* The sensors of the machine, as rows that stay where they are from look to look. */

struct domain_table {
	struct sensor_set sensors;
	int64_t (*rows)[DEVICE_COUNT]; // owned: of the last look, one for each device of the set
	struct energy_track *tracks;   // owned: likewise
	struct now_domain *domains;    // owned: by kind and number
	struct package_limit *limits;  // owned: of each of `domains`
	size_t *device_of;             // owned: domains[i] is device device_of[i] of the set
	size_t n;
	int64_t suspended_ns; // time that the machine had slept at the last look
	char problem[480];    // "": there is energy
};

// -EINVAL: as sensor_set_open; -ENOMEM. *table is to be closed in every case.
int domain_table_open(struct domain_table *table, const struct now_options *options, struct wattle_error *reterr);
void domain_table_keep(const struct domain_table *table, size_t i, struct now_kept *ret_kept);
void domain_table_close(struct domain_table *table);
// Reads all sensors and fills the domains, but not what is attributed.
void domain_table_look(struct domain_table *table, const struct wattle_env *env, const struct sensor_context *context);

/* All processes of the machine, followed from look to look: what each used meanwhile, who came and who went.
 *
 * An open /proc/PID/stat belongs to one process for ever (it gives ESRCH when that one is gone), and reading it again costs
 * half of opening it, so they are kept open as far as the limit of open files allows. */

struct process_row { // one process, as long as it lives
	struct now_process now;
	char comm[PROCESS_NAME_SIZE];
	int64_t own_ns, children_ns; // CPU time as of the last look
	/* CPU time since the look before: its own, and that of children which it waited for meanwhile and no look has counted.
	 * VALUE_MISSING: not known. */
	int64_t used_ns, late_ns; // late_ns: the children's part of it
	int64_t counted_ns;       // of children that ended meanwhile: what earlier looks have counted of them
	int stat_fd;              // owned; -1: opened at each look
	bool is_new, words_known;
	double added_j[NOW_RESOURCES]; // attributed since the look before
	uint32_t group[NOW_GROUPINGS]; // where it belongs: index + 1 in the group table; 0: nowhere, or not known
	uint32_t asked;                // looks at which that could be asked
};

struct process_table {
	const struct wattle_env *env; // borrowed
	struct process_units units;
	int folder_fd; // owned, once it is_open: /proc itself
	bool is_open, keeps_files;
	enum now_arguments arguments;
	pid_t own_pid, target_pid; // as /proc numbers them; 0: not there
	bool target_is_gone;
	struct process_row *rows; // owned; ascending by pid; in the last look
	size_t n, room;
	struct process_row *old; // owned: those of the look before, while a look is taken
	size_t n_old, old_room;
	struct process_row *gone; // owned: those that ended since the look before
	size_t n_gone, gone_room;
	size_t n_files, most_files;
	const struct now_kept_process *kept; // borrowed during the first look
	size_t n_kept;
	int64_t last_t_ns; // of the look before; VALUE_MISSING: this is the first one
	int64_t threads, own_sum_ns;
	char *text;       // owned scratch
	struct buf shown; // … of one process: its words as they are shown
};

// -ENOENT: options->pid is no process, with a sentence; -ENOMEM. *table is to be closed in every case.
int process_table_open(struct process_table *table, const struct now_options *options, struct wattle_error *reterr);
void process_table_close(struct process_table *table);
/* One look. busy_ns: CPU time of the whole machine since the look before, which the processes together can't exceed;
 * VALUE_MISSING unknown. Never fails: with no memory for more rows those that came last are left out. */
void process_table_look(struct process_table *table, int64_t t_ns, int64_t busy_ns);
struct process_row *process_table_find(const struct process_table *table, pid_t pid); // NULL: not there

/* ---- between the files of it ---- */

struct process_row *process_rows_find(struct process_row *rows, size_t n, pid_t pid); // ascending ones; NULL: not there
// process_kin.c: adds to used_ns what children used that ended meanwhile; marks who came to the target's tree.
void process_kin_count(struct process_table *table, int64_t busy_ns);
void process_kin_mark_target(struct process_table *table);
// process_words.c: fills command and uid from /proc/PID/cmdline and status.
void process_words_read(struct process_table *table, const char *comm, struct now_process *process);
// Pure half: the words of a command line, a NUL after each, as one line. False if there are none (a kernel thread, a zombie).
bool process_words_join(const char *words, size_t size, char *out, size_t out_size);

/* Processes summed up by job and by cgroup. */

struct group_table {
	const struct wattle_env *env; // borrowed
	bool wanted[NOW_GROUPINGS];
	struct now_group *groups[NOW_GROUPINGS]; // owned; a process_row holds index + 1; free rows have no processes
	size_t n[NOW_GROUPINGS], room[NOW_GROUPINGS];
	char *scratch; // owned; NULL: nothing is wanted
};

int group_table_open(struct group_table *table, const struct now_options *options); // -ENOMEM
void group_table_close(struct group_table *table);
// After the processes were read: finds out who belongs where, of those that are new and of a few others, for some move.
void group_table_look(struct group_table *table, struct process_table *processes);
// After everything was divided.
void group_table_sum(struct group_table *table, const struct process_table *processes);

/* Whose the watts are: the attribution of reports (energy/shares.h), over all processes of the machine and for one look.
 * Pure: from two tables to figures in them. */

struct divide_machine {
	int64_t busy_ns;           // CPU time since the look before, all cores; VALUE_MISSING unknown
	int64_t memory_used_bytes; // VALUE_MISSING unknown
};

enum now_resource divide_resource(enum domain_kind kind); // what a domain of this kind meters

struct divided { // of the domains in the total
	struct now_sum sum;
	struct now_added added[NOW_RESOURCES];
	bool exists[NOW_RESOURCES];
};

// Fills what is attributed: of each process its watts, GPU use and joules, of each domain target_w.
void divide_watts(struct domain_table *domains, struct process_table *processes, const struct divide_machine *machine,
	struct divided *ret_divided);

/* ---- divide_gpu.c, for divide.c ---- */

// Before the first GPU of a look: nobody uses any.
void divide_gpu_begin(struct process_table *processes);
// One GPU: adds to gpu_percent, gpu_memory_bytes, gpu_w and energy_j of its users.
struct shares divide_gpu(struct domain_table *domains, size_t i, struct process_table *processes);
