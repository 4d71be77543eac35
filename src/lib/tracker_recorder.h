/* One recorder of a tracker: from its start to its report. */
#pragma once

#include "base/error.h"
#include "lib/tracker_options.h"

#include <sys/types.h>

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
