/* Reading small text files of /proc and /sys, once or again and again.
 *
 * Paths are relative to a root descriptor and can't leave it: symlinks, absolute ones too, are resolved inside the
 * root (openat2 with RESOLVE_IN_ROOT; a plain openat where the kernel or a seccomp filter refuses that). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Close-on-exec descriptor or negative errno. flags as for open(2), O_RDONLY | O_DIRECTORY, …
int file_open_in(int root_fd, const char *path, int flags);
// Reads a whole small file; NUL-terminates; returns its length (cut at size - 1) or negative errno.
ssize_t file_read_in(int root_fd, const char *path, char *out, size_t size);
// As above without trailing newlines and blanks.
ssize_t file_read_line_in(int root_fd, const char *path, char *out, size_t size);
int file_read_u64_in(int root_fd, const char *path, uint64_t *ret_value);
// Reads a whole file of any size up to `ceiling` into malloc'ed, NUL-terminated memory; the caller frees.
int file_read_all_in(int root_fd, const char *path, size_t ceiling, char **ret_text, size_t *ret_size);
// True if it can be opened for reading by this process now; else false and *ret_errno says why (positive errno).
bool file_readable_in(int root_fd, const char *path, int *ret_errno);

/* The first bytes of a regular file: how many could be read, or negative errno; -EINVAL for anything else, which is not opened: a
 * pipe that is opened and closed loses its writer. */
ssize_t file_head(const char *path, void *out, size_t size);

/* A file that is read at every sample: kept open, read with pread at offset 0. When the file behind it was replaced
 * or went away and came back (a zone hot-plugged, a film's next frame renamed into place) it is opened again. */
struct file_kept {
	int fd;               // -1: not open (never was, or went away); owned
	int root_fd;          // borrowed
	bool may_be_replaced; // not a kernel file: look whether the name still leads to the same file
	char path[232];
};

// Opens; returns 0 or negative errno. On failure *kept is still valid: each read tries to open it again.
int file_kept_open(struct file_kept *kept, int root_fd, const char *path);
void file_kept_close(struct file_kept *kept);
// One reading, NUL-terminated; length or negative errno.
ssize_t file_kept_read(struct file_kept *kept, char *out, size_t size);
int file_kept_read_u64(struct file_kept *kept, uint64_t *ret_value);
int file_kept_read_i64(struct file_kept *kept, int64_t *ret_value); // with a sign, as drivers write it
