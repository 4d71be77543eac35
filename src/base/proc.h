/* Other processes, as /proc shows them to this one. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* The variables that a process was started with, "NAME=VALUE" NUL "NAME=VALUE" NUL …: at most the first MiB, with a NUL behind it; the
 * caller frees. NULL, with errno: they can't be read. */
char *proc_environ(pid_t pid, size_t *ret_size);
// The value of the first variable of that name in such a text; NULL: not set.
const char *proc_environ_find(const char *text, size_t size, const char *name);
// 0: it has no parent that we see.
pid_t proc_parent(pid_t pid);
