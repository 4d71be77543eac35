/* Lock files of mode 0600: other users cannot take the lock. An empty file beside what it protects. A reader of a file can lock it as well as its
 * writer can, so a file that others may read can't be its own lock. The kernel drops the lock when its holder ends, however that ends;
 * the file that a killed holder leaves is taken over. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct stat;

/* Opens a lock file and takes no lock; makes it if it is missing. Errors as of lock_file_take. For locks on parts of a file. */
int lock_file_open(int folder_fd, const char *path, int *ret_fd, struct wattle_error *reterr);
// A regular file of this user or of root: no third user made it, who could hold a lock on it for ever.
bool lock_file_may_own(const struct stat *st);
/* path: relative to folder_fd (AT_FDCWD: any path). -EBUSY: another process holds it; -EPERM: what stands there belongs to another user or is
 * no plain file; else what openat says. A sentence in all cases, except that a file system without locks keeps nobody out. */
int lock_file_take(int folder_fd, const char *path, int *ret_fd, struct wattle_error *reterr);
// Removes the file and drops the lock.
void lock_file_drop(int folder_fd, const char *path, int fd);
