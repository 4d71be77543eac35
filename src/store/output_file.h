/* The output file of a store: checks of an existing file, exclusion of other writers, and naming of a new file.
 *
 * The process that holds the lock on PATH-lock (base/lock_file.h) may write to PATH, from output_file_open to output_file_close, whether
 * the file is new, appended to or replaced. The lock protects the name: the file, SQLite's files and the spool beside it, the
 * file that is set aside, and the renames between them.
 *
 * A new file is written under a temporary name and renamed when it is complete, so that no reader sees a partial file, and the
 * old file is deleted only when the new one exists. With --overwrite the old file is set aside until the recording has begun;
 * if the command cannot be started, the old file is restored. */
#pragma once

#include "base/error.h"
#include "store/store.h"

#include <stdbool.h>

enum { OUTPUT_FILE_PATH_SIZE = 4096 };

struct output_file {
	const char *what;             // "run file": for messages; borrowed
	char path[OUTPUT_FILE_PATH_SIZE];           // requested name; symbolic links of an existing file are resolved
	char temporary_path[OUTPUT_FILE_PATH_SIZE]; // temporary name of the new file until output_file_publish; "" none
	char old_path[OUTPUT_FILE_PATH_SIZE];       // name of the old file until the recording has begun; "" none
	int fd;                       // the file, read and write, with the recorder's mark; closed after SQLite's descriptors
	int lock_fd;                  // owned if is_locked: PATH-lock
	bool is_locked;               // this process holds the exclusive right to write at the name
	bool is_new;                  // created by this process; false: appending to an existing file
	bool replaces;                // an old file exists at the name (--overwrite)
};

/* Refuses, or opens the existing file (--append), or creates an empty new file at place->making. -EEXIST, -ENOENT, -EISDIR,
 * -EACCES, -EBUSY (another recorder writes to the file) …, with a message. */
int output_file_open(struct output_file *output, const struct store_open_options *options, const char *what,
	struct wattle_error *reterr);
// Renames the complete new file to its final name. On failure the old file is unchanged.
int output_file_publish(struct output_file *output, struct wattle_error *reterr);
/* Whether a running recorder has this file open. Unknown: the file system has no locks; then only a run marked complete is
 * known to have no recorder. */
enum output_file_recorder { OUTPUT_FILE_RECORDER_NONE, OUTPUT_FILE_RECORDER_LIVES, OUTPUT_FILE_RECORDER_UNKNOWN };
enum output_file_recorder output_file_recorder(const char *path);
void output_file_remove(
	const char *path); // removes a run file with the files that SQLite and the recorder may have left beside it
// The recording has begun: deletes the file that was set aside. May be called repeatedly.
void output_file_discard_old(struct output_file *output);
// Whether the name still refers to our file: a folder can be removed while a program runs.
bool output_file_is_ours(const struct output_file *output);
/* Closes. discard: removes a file that we created and restores the file that was set aside. No other descriptor of the file may
 * be open in this process. */
void output_file_close(struct output_file *output, bool discard);

/* Recognising a run file by its first 100 bytes, without opening a database. */

// 0; -ENOENT, -EACCES …: cannot be read; -EINVAL: not a run file; -ENOTSUP: a newer schema. With a message.
int file_type_check_run(const char *path, struct wattle_error *reterr);
// Whether the file is an SQLite file of any kind (a run file, gpu_tracker's tracking file …) or a span file.
bool file_type_is_measurements(const char *path);

/* Metadata added to a finished run file: a row of its table run. */

// Replaces the value of the key. -ENOENT, -EINVAL (not a run file), -EBUSY, -ENOSPC …, with a message.
int run_set_metadata(const char *path, const char *key, const char *value, struct wattle_error *reterr);
