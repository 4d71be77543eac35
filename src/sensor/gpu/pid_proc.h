/* What pid_match reads of /proc. */
#pragma once

#include "sensor/gpu/pid_match.h"

// How /proc relates to us; *ret_self is our number in it.
enum pid_view pid_proc_view(const struct wattle_env *env, pid_t *ret_self);
// The innermost number of a process; 0: gone, or the kernel does not tell.
pid_t pid_proc_inner(const struct wattle_env *env, pid_t pid);
// Fills everything of `seen` but its pid and time. A process that is gone keeps what was known of it.
void pid_proc_look(const struct pid_match *match, struct pid_seen *seen);
// Fills match->holders from the descriptors of all processes that are visible here.
void pid_proc_find_holders(struct pid_match *match);
