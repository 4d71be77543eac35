/* Lock files of mode 0600, which other users cannot lock. A lock file is an empty file beside the protected file: a reader of
 * a file can lock it as well as its writer, so a file that others may read can't be its own lock. The kernel releases the
 * lock when its holder ends in any way; the file of a killed holder is reused. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct stat;

/* Opens a lock file, creating it if it is missing, without locking it. Errors as for lock_file_take. For locks on parts of a
 * file. */
int lock_file_open(int folder_fd, const char *path, int *ret_fd, struct wattle_error *reterr);
// Whether the file is a regular file of this user or of root: a third user could hold a lock on a file of theirs forever.
bool lock_file_may_own(const struct stat *st);
/* path: relative to folder_fd (AT_FDCWD: any path). Returns -EBUSY if another process holds the lock, -EPERM if the file
 * belongs to another user or is not a regular file, else the errno of openat; each with a sentence. On a file system without
 * locks the call succeeds without excluding other processes. */
int lock_file_take(int folder_fd, const char *path, int *ret_fd, struct wattle_error *reterr);
// Removes the file and releases the lock.
void lock_file_drop(int folder_fd, const char *path, int fd);
