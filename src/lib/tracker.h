
#pragma once

#include "base/error.h"
#include "wattle.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// WATTLE_DISABLE=1: every call is a no-op that succeeds. Set-uid programs ignore the variable.
bool is_disabled_by_environment(void);

/* The options of a tracker: checked, copied, and made into the recorder's command line. */

// Deep copy; members that `options` is too old for, or all of them (NULL), have their defaults. -EINVAL, -ENOMEM.
int tracker_options_copy(const struct wattle_tracker_options *options, struct wattle_tracker_options *ret_copy);
void tracker_options_finish(struct wattle_tracker_options *copy);

// Of GPUs, as meters take them too.
bool tracker_option_is_brand(const char *text);

struct tracker_command {
	char **words; // owned, NULL-terminated
	size_t n, capacity;
	int failed; // 0 or -ENOMEM; sticky
};

/* `wattle attach` for these options: run file `output`, process `pid`, its end of the line at descriptor control_fd.
 * 0 or -ENOMEM; to be released with tracker_command_finish either way. */
int tracker_command_make(struct tracker_command *command, const struct wattle_tracker_options *options,
	const char *output, int64_t pid, int control_fd);
void tracker_command_finish(struct tracker_command *command);

/* Where the program wattle is that belongs to this library. */

/* `given` (options.program), else beside the library: ../bin or ../../bin of its folder, cli in the build tree, the
 * installed place; else in $PATH, unless the program is set-uid. -ENOENT, -ENAMETOOLONG; -EACCES: `given` can't be
 * executed. */
int tracker_program_find(const char *given, char *ret_path, size_t size);

/* Where the spans of this process go while trackers run, and where those of the programs that it starts go. */

struct tracker_ring {
	struct tracker_ring *below; // who came before and is still there
	char *ring;                 // owned: NULL: not entered
	char *ring_before;          // owned: where spans went; NULL: nowhere
	char *environment_before;   // owned: what WATTLE_RING was; NULL: not set
	bool is_in_environment;
};

/* The writer goes to `ring`, and WATTLE_RING is set unless keep_environment. A program that is recorded from outside as
 * well, or by several trackers, gives its spans to who came last. */
void tracker_ring_enter(struct tracker_ring *own, const char *ring, bool keep_environment);
// As if it had never come, in whatever order they leave.
void tracker_ring_leave(struct tracker_ring *own);
// In a forked child: only the memory.
void tracker_ring_forget(struct tracker_ring *own);

/* One recorder of a tracker: from its start to its report. */

struct tracker_recorder {
	int fd; // owned: our end of the line; -1: none
	// Of that socket: the program may have closed it, and made something else of its number.
	uint64_t fd_device, fd_node;
	pid_t pid;      // 0: unknown
	char *folder;   // owned: of a temporary run file; NULL: the program's own place
	char *run_file; // owned
	char *ring;     // owned: what WATTLE_RING is to be; "" no ring
	char *report;   // owned: JSON; NULL: none yet
};

// Returns when the first sample is taken. Negative errno with a sentence: there is no recorder and nothing is left.
int tracker_spawn(struct tracker_recorder *recorder, const struct wattle_tracker_options *options, pid_t pid,
	struct wattle_error *reterr);
// Ends the recording and waits until the run file is whole and the report is here. -EIO with a sentence. No recorder after it.
int tracker_end(struct tracker_recorder *recorder, double timeout_s, struct wattle_error *reterr);
// Takes a temporary run file away, but not from under a recorder that could not be told to stop.
void tracker_remove_files(struct tracker_recorder *recorder);
// The line and the memory; a recorder that is there goes on.
void tracker_forget(struct tracker_recorder *recorder);
