/* Matching of a driver's process ids to the target.
 *
 * In the initial pid namespace the driver's ids are ours, the target's are in its list, and an id unknown to /proc has ended.
 * In a container the driver's ids are often the host's. An id that happens to equal one of the target's then proves nothing,
 * so ids are matched by these methods, in this order:
 *
 *	equality	as long as the driver has reported no process that does not exist here
 *	NSpid		/proc is that of an outer namespace, or a test tree: the innermost pid of /proc/PID/status, of the
 *			target's processes (a driver that translates) or of the driver's (one that does not)
 *	cgroup		likewise, if the kernel lacks NSpid: the cgroup of the target, unless that is the root
 *	descriptors	as many unknown processes on the device as target processes that have it open, and no other
 *			process here has it open (pid_holders)
 *	exclusivity	no other process here uses the device, so the target does: presence only
 *
 * pid_match_side applies the first three. The caller applies the others, for whole devices, with pid_match_holders. Nothing
 * here allocates after open. /proc is read only for ids that equality does not resolve, each at most once a second. */
#pragma once

#include "base/env.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum pid_side { PID_OTHER, PID_TARGET, PID_UNKNOWN };
enum pid_method { PID_BY_EQUALITY, PID_BY_NSPID, PID_BY_CGROUP, PID_BY_DESCRIPTORS, PID_BY_EXCLUSIVITY, PID_UNMATCHED };
const char *pid_method_note(enum pid_method method); // text for domain.note; "" for equality

enum { PID_RECENT_MAX = 4096, PID_SEEN_MAX = 2048, PID_MINORS_MAX = 64 };

// Relation of /proc to this process.
enum pid_view {
	PID_VIEW_INITIAL, // our pids are the driver's
	PID_VIEW_NESTED, // this process is in a pid namespace; the target's pids are those of /proc, the driver's may not be
	PID_VIEW_OUTER,  // WATTLE_PROCFS is the /proc of an enclosing namespace; the target's pids are of our namespace
	PID_VIEW_MADE,   // a tree of files without this process
};

// A current or recent target process: the driver's samples lag behind.
struct pid_recent {
	pid_t pid;
	pid_t inner; // innermost pid, where it can differ; 0: unknown or not read
	int64_t seen_ns;
};

// What /proc shows for an id that the driver reported.
struct pid_seen {
	pid_t pid;
	pid_t inner;       // innermost pid; 0: not shown by /proc
	bool visible;      // exists, or existed at an earlier read
	bool is_ours;      // no evidence of a pid namespace other than the target's
	bool same_cgroup;  // same as the target's, and not the root
	int64_t read_ns;   // time of the last read; the oldest entry is evicted when the table is full
};

// Processes that have a device open.
struct pid_holders {
	unsigned int target, others;
	bool can_decide; // the descriptors are visible, so an empty result is valid
};

struct pid_match {
	const struct wattle_env *env; // borrowed
	enum pid_view view;
	pid_t main_pid, own_pid; // own_pid: as numbered by /proc
	int64_t t_ns;
	int64_t ended_ns;          // time at which a target process was last found to have ended; 0: never
	int64_t foreign_until_ns;  // equality proves nothing before this time
	struct pid_recent *recent; // owned; ascending by pid
	size_t n_recent;
	pid_t *last_pids; // owned; target pids at the last update, to detect changes
	size_t n_last;
	struct pid_seen *seen; // owned; ascending by pid
	size_t n_seen;
	int64_t holders_ns; // time of the last descriptor scan; 0: never
	struct pid_holders holders[PID_MINORS_MAX];
};

int pid_match_open(struct pid_match *match, const struct wattle_env *env); // -ENOMEM
void pid_match_close(struct pid_match *match);
// Updates the target; call before the readings of a tick.
void pid_match_update(struct pid_match *match, const struct sensor_context *context);
// Registers an id found on the device; call before any query about it. An id that does not exist here indicates another
// namespace.
void pid_match_add_seen(struct pid_match *match, uint32_t pid);
// Returns PID_UNKNOWN if none of the methods here applies. *ret_method is set with the answer; *ret_pid is the local pid.
enum pid_side pid_match_side(struct pid_match *match, uint32_t pid, enum pid_method *ret_method, pid_t *ret_pid);
// Returns the local /proc pid of the process with this id, target or not; 0: unknown.
pid_t pid_match_local(struct pid_match *match, uint32_t pid);
// Returns the processes with /dev/nvidia<minor> (or only /dev/nvidia-uvm) open, refreshed at most once a second.
struct pid_holders pid_match_holders(struct pid_match *match, unsigned int minor);

/* The /proc accesses of pid_match. */

// Returns the relation of /proc to this process; *ret_self is its pid there.
enum pid_view pid_proc_view(const struct wattle_env *env, pid_t *ret_self);
// Innermost pid of a process; 0: the process is gone, or the kernel does not show it.
pid_t pid_proc_inner(const struct wattle_env *env, pid_t pid);
// Fills all members of `seen` except pid and time. A process that is gone keeps its earlier values.
void pid_proc_scan(const struct pid_match *match, struct pid_seen *seen);
// Fills match->holders from the descriptors of all visible processes.
void pid_proc_find_holders(struct pid_match *match);
