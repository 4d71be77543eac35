/* Reading of small text files of /proc and /sys, once or repeatedly.
 *
 * Paths are relative to a root descriptor and can't leave it: symlinks, including absolute ones, are resolved inside the root
 * (openat2 with RESOLVE_IN_ROOT; a plain openat if the kernel or a seccomp filter refuses that). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Returns a close-on-exec descriptor or a negative errno. flags as for open(2), O_RDONLY | O_DIRECTORY, …
int file_open_in(int root_fd, const char *path, int flags);
// Reads a whole small file and NUL-terminates it; returns its length (at most size - 1) or a negative errno.
ssize_t file_read_in(int root_fd, const char *path, char *out, size_t size);
// As above without trailing newlines and blanks.
ssize_t file_read_line_in(int root_fd, const char *path, char *out, size_t size);
int file_read_u64_in(int root_fd, const char *path, uint64_t *ret_value);
// Reads a whole file of any size up to `ceiling` into malloc'ed, NUL-terminated memory; the caller frees.
int file_read_all_in(int root_fd, const char *path, size_t ceiling, char **ret_text, size_t *ret_size);
// Returns true if this process can open the file for reading now; else false with a positive errno in *ret_errno.
bool file_readable_in(int root_fd, const char *path, int *ret_errno);

/* Reads the first bytes of a regular file; returns their number or a negative errno. Other files are not opened and give
 * -EINVAL: opening and closing a pipe would end its writer. */
ssize_t file_head(const char *path, void *out, size_t size);

/* A file that is read at every sample: kept open, read with pread at offset 0. It is reopened if the file was replaced, or
 * disappeared and returned (a hot-plugged zone, the next frame of a replay renamed into place). */
struct file_kept {
	int fd;               // -1: not open (never opened, or disappeared); owned
	int root_fd;          // borrowed
	bool may_be_replaced; // not a kernel file: check whether the name still refers to the same file
	char path[232];
};

// Opens the file; returns 0 or a negative errno. On failure *kept is still valid: each read tries to open it again.
int file_kept_open(struct file_kept *kept, int root_fd, const char *path);
void file_kept_close(struct file_kept *kept);
// Reads once, NUL-terminated; returns the length or a negative errno.
ssize_t file_kept_read(struct file_kept *kept, char *out, size_t size);
int file_kept_read_u64(struct file_kept *kept, uint64_t *ret_value);
int file_kept_read_i64(struct file_kept *kept, int64_t *ret_value); // with a sign, as drivers write it
