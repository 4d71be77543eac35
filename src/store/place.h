/* The output file of a store: what may exist at its name, who else writes to it, and how a new one gets its name.
 *
 * Who holds the lock of PATH-lock (base/lock_file.h) may write to PATH, from place_open to place_close, whether the file is new, appended
 * to or replaced. The lock protects the name: the file, SQLite's files and the spool beside it, the file that is set aside, and the
 * renames between them.
 *
 * A new file is made under a name of its own and gets the wanted name when it is whole, so that nobody ever sees half
 * a file, and an old file is gone only when the new one is there. The old file that --overwrite replaces is set aside
 * until the recording has begun; if the command can't be started it comes back. */
#pragma once

#include "base/error.h"
#include "store/store.h"

#include <stdbool.h>

enum { PLACE_PATH_SIZE = 4096 };

struct place {
	const char *what;             // "run file": for messages; borrowed
	char path[PLACE_PATH_SIZE];   // the wanted name, symbolic links of an existing file resolved
	char making[PLACE_PATH_SIZE]; // the new file until it is settled; "" none
	char aside[PLACE_PATH_SIZE];  // the old file until the recording has begun; "" none
	int fd;                       // of the file, read and write, with the recorder's mark; closed after SQLite's
	int lock_fd;                  // owned, where it is_locked: of PATH-lock
	bool is_locked;               // what stands at the name is ours alone to write to
	bool is_new;                  // made by us; false: an existing one is appended to
	bool replaces;                // an old file stands at the name (--overwrite)
};

/* Refuses, or opens the existing file (--append), or makes an empty new one at place->making. -EEXIST, -ENOENT,
 * -EISDIR, -EACCES, -EBUSY (another recorder writes to it) … with a sentence. */
int place_open(struct place *place, const struct store_open_options *options, const char *what,
	struct wattle_error *reterr);
// The new file is whole: gives it its name. On failure the old file is where it was.
int place_settle(struct place *place, struct wattle_error *reterr);
/* Whether a recorder that lives has this file. Unknown: this file system has no locks, so nobody can tell; only a run that says of
 * itself that it is complete has none then. */
enum place_recorder { PLACE_RECORDER_NONE, PLACE_RECORDER_LIVES, PLACE_RECORDER_UNKNOWN };
enum place_recorder place_recorder(const char *path);
void place_remove(const char *path); // a run file, with what SQLite and its recorder may have left beside it
// The recording has begun: what was set aside is not needed any more. Any number of times.
void place_keep(struct place *place);
// Whether the name still leads to our file: a folder can be removed while a program runs.
bool place_is_ours(const struct place *place);
/* Closes. discard: a file that we made goes away, and what was set aside comes back. Nothing else may have the file
 * open in this process. */
void place_close(struct place *place, bool discard);

/* Is this a run file? Answered from its first 100 bytes, without opening a database. */

// 0; -ENOENT, -EACCES …: can't be read; -EINVAL: no run file; -ENOTSUP: one of a newer schema.
// With a sentence.
int probe_run_file(const char *path, struct wattle_error *reterr);
// Whether it is an SQLite file of any kind (a run file, gpu_tracker's tracking file …) or a span file.
bool probe_measurements(const char *path);

/* A fact that is added to a finished run file: a row of its table run. */

// Replaces what stands there under that key. -ENOENT, -EINVAL (no run file), -EBUSY, -ENOSPC …, with a sentence.
int run_keep_fact(const char *path, const char *key, const char *value, struct wattle_error *reterr);
