
#pragma once

#include "base/error.h"
#include "wattle.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// WATTLE_DISABLE=1: every call is a no-op that succeeds. Set-uid programs ignore the variable.
bool is_disabled_by_environment(void);

/* Tracker options: validation, copies and conversion into the recorder's command line. */

// Deep copy. Members that an older `options` lacks, or all of them (NULL), get their defaults. -EINVAL, -ENOMEM.
int tracker_options_copy(const struct wattle_tracker_options *options, struct wattle_tracker_options *ret_copy);
void tracker_options_finish(struct wattle_tracker_options *copy);

// GPU brands, as meters accept them too.
bool tracker_option_is_brand(const char *text);

struct tracker_command {
	char **words; // owned, NULL-terminated
	size_t n, capacity;
	int failed; // 0 or -ENOMEM; sticky
};

/* Builds a `wattle attach` command for these options: run file `output`, process `pid`, the recorder's end of the
 * socket at descriptor control_fd. 0 or -ENOMEM; call tracker_command_finish in either case. */
int tracker_command_make(struct tracker_command *command, const struct wattle_tracker_options *options,
	const char *output, int64_t pid, int control_fd);
void tracker_command_finish(struct tracker_command *command);

/* Path of the wattle program that belongs to this library. */

/* Search order: `given` (options.program) if set, otherwise ../bin or ../../bin relative to the library's folder, cli
 * in the build tree, the installed path, and $PATH unless the program is set-uid. -ENOENT, -ENAMETOOLONG; -EACCES:
 * `given` can't be executed. */
int tracker_program_find(const char *given, char *ret_path, size_t size);

/* Lock that keeps forks of other threads out of calls of glibc and of drivers whose state a forked child inherits in
 * the middle of a change (glibc 2.36): setenv leaves its lock held in the child, dlopen leaves a list of libraries that it
 * has already unmapped. Recursive: a driver may fork while it is opened. */

// Call it before pthread_atfork for another lock under which fork_lock_take is taken: fork takes the latest lock first.
void fork_lock_init(void);
void fork_lock_take(void);
void fork_lock_release(void);

/* Destination of the spans of this process and of its child programs while trackers run. */

struct tracker_ring {
	struct tracker_ring *below; // previously entered tracker that is still active
	char *ring;                 // owned; NULL: not entered
	char *ring_before;          // owned: previous ring of the writer; NULL: none
	char *environment_before;   // owned: previous value of WATTLE_RING; NULL: not set
	bool is_in_environment;
};

/* Directs the span writer to `ring` and sets WATTLE_RING unless keep_environment. If the program is also recorded from
 * outside, or by several trackers, the one entered last receives its spans. */
void tracker_ring_enter(struct tracker_ring *own, const char *ring, bool keep_environment);
// Leaves as if the tracker had never been entered. Trackers may leave in any order.
void tracker_ring_leave(struct tracker_ring *own);
// For a forked child: only frees the memory.
void tracker_ring_free(struct tracker_ring *own);

/* One recorder process of a tracker, from start to report. */

struct tracker_recorder {
	int fd; // owned: the library's end of the socket; -1: none
	// Identity of that socket: the program may have closed the descriptor and reused its number.
	uint64_t fd_device, fd_node;
	pid_t pid;      // 0: unknown
	char *folder;   // owned: folder of a temporary run file; NULL: the program chose the path
	char *run_file; // owned
	char *ring;     // owned: value for WATTLE_RING; "" no ring
	char *report;   // owned: JSON; NULL: none yet
};

// Returns after the first sample. Negative errno with a message: no recorder runs and nothing is left behind.
int tracker_spawn(struct tracker_recorder *recorder, const struct wattle_tracker_options *options, pid_t pid,
	struct wattle_error *reterr);
// Ends the recording and waits for the complete run file and the report. -EIO with a message. The recorder is gone in
// either case.
int tracker_end(struct tracker_recorder *recorder, double timeout_s, struct wattle_error *reterr);
// Removes a temporary run file, unless a recorder that could not be stopped still writes to it.
void tracker_remove_files(struct tracker_recorder *recorder);
// Closes the socket and frees the memory; a running recorder continues.
void tracker_free(struct tracker_recorder *recorder);
