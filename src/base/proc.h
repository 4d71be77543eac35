/* Information on other processes from /proc. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Reads the environment that a process was started with, "NAME=VALUE" NUL "NAME=VALUE" NUL …: at most the first MiB,
 * NUL-terminated; the caller frees it. Returns NULL with errno if it can't be read. */
char *proc_environ(pid_t pid, size_t *ret_size);
// Returns the value of the first variable of that name in such a text; NULL: not set.
const char *proc_environ_find(const char *text, size_t size, const char *name);
// Returns 0 if the parent is not visible.
pid_t proc_parent(pid_t pid);
