/* Whose is a process id that a driver names?
 *
 * In the initial pid namespace the driver's numbers are ours, and the target's are those in its list; one that /proc does
 * not know has ended. In a container they are often the host's. Then a number that happens to be the target's proves
 * nothing, so ids are matched by what can be seen, in this order:
 *
 *	equality	as long as the driver has named no process that does not exist here
 *	NSpid		/proc is that of an outer namespace, or a made tree: the innermost number of /proc/PID/status, of the
 *			target's processes (a driver that translates) or of the driver's (one that does not)
 *	cgroup		likewise, where the kernel does not tell NSpid: the cgroup of the target, unless that is the root
 *	descriptors	as many unknown processes on the device as processes of the target that have it open, and no other
 *			process here has (pid_holders)
 *	exclusivity	nobody else here uses the device, so it is the target: presence only
 *
 * The first three are this file's pid_match_side, the others are for whole devices and so the caller's, with
 * pid_match_holders. Nothing here allocates after open; /proc is looked at only for ids that equality does not settle, and
 * each at most once a second. */
#pragma once

#include "base/env.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum pid_side { PID_OTHER, PID_TARGET, PID_UNKNOWN };
enum pid_method { PID_BY_EQUALITY, PID_BY_NSPID, PID_BY_CGROUP, PID_BY_DESCRIPTORS, PID_BY_EXCLUSIVITY, PID_UNMATCHED };
const char *pid_method_note(enum pid_method method); // for domain.note; "" for equality

enum { PID_RECENT_MAX = 4096, PID_SEEN_MAX = 2048, PID_MINORS_MAX = 64 };

// How /proc relates to ourselves.
enum pid_view {
	PID_VIEW_INITIAL, // our numbers are the driver's
	PID_VIEW_NESTED, // we are in a pid namespace; the target's numbers are those of /proc, the driver's perhaps not
	PID_VIEW_OUTER,  // WATTLE_PROCFS is the /proc of a namespace around ours; the target's numbers are of ours
	PID_VIEW_MADE,   // a tree of files that knows nothing of us
};

// A process of the target, or one that was until a moment ago: the driver's samples lag behind.
struct pid_recent {
	pid_t pid;
	pid_t inner; // its innermost number, where that can be another; 0 unknown or not asked
	int64_t seen_ns;
};

// What /proc says of an id that the driver named.
struct pid_seen {
	pid_t pid;
	pid_t inner;       // its innermost number; 0: /proc does not tell
	bool visible;      // it is there, or was when we looked before
	bool is_ours;      // nothing says that it is of another pid namespace than the target
	bool same_cgroup;  // as the target, and not the root
	int64_t looked_ns; // when; also what is dropped first when there are too many
};

// Processes that have a device open.
struct pid_holders {
	unsigned int target, others;
	bool can_tell; // descriptors of such devices can be seen at all: an empty answer is one
};

struct pid_match {
	const struct wattle_env *env; // borrowed
	enum pid_view view;
	pid_t main_pid, own_pid; // own_pid: as /proc numbers us
	int64_t t_ns;
	int64_t ended_ns;          // when a process of the target was last missed; 0 never
	int64_t foreign_until_ns;  // until then equality proves nothing
	struct pid_recent *recent; // owned; ascending by pid
	size_t n_recent;
	pid_t *last_pids; // owned; the target at the last update, to see at once that nothing changed
	size_t n_last;
	struct pid_seen *seen; // owned; ascending by pid
	size_t n_seen;
	int64_t holders_ns; // when the descriptors were looked at; 0 never
	struct pid_holders holders[PID_MINORS_MAX];
};

int pid_match_open(struct pid_match *match, const struct wattle_env *env); // -ENOMEM
void pid_match_close(struct pid_match *match);
// Before the readings of a tick: the target as it is now.
void pid_match_update(struct pid_match *match, const struct sensor_context *context);
// Before any question about them: these ids are on the device. What does not exist here tells of another namespace.
void pid_match_meet(struct pid_match *match, uint32_t pid);
// PID_UNKNOWN: not by what this file knows. *ret_method is set with the answer; *ret_pid is the id as we know it.
enum pid_side pid_match_side(struct pid_match *match, uint32_t pid, enum pid_method *ret_method, pid_t *ret_pid);
// The number by which /proc here knows the process with this id, target or not; 0: that can't be told.
pid_t pid_match_local(struct pid_match *match, uint32_t pid);
// Who has /dev/nvidia<minor> open (or only /dev/nvidia-uvm), looked up at most once a second.
struct pid_holders pid_match_holders(struct pid_match *match, unsigned int minor);

/* What pid_match reads of /proc. */

// How /proc relates to us; *ret_self is our number in it.
enum pid_view pid_proc_view(const struct wattle_env *env, pid_t *ret_self);
// The innermost number of a process; 0: gone, or the kernel does not tell.
pid_t pid_proc_inner(const struct wattle_env *env, pid_t pid);
// Fills everything of `seen` but its pid and time. A process that is gone keeps what was known of it.
void pid_proc_look(const struct pid_match *match, struct pid_seen *seen);
// Fills match->holders from the descriptors of all processes that are visible here.
void pid_proc_find_holders(struct pid_match *match);
