/* Who the recorder is that holds a claim: asked of /proc, so that nothing need be sent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Its rank, by the variables that it was started with; VALUE_MISSING unknown.
int64_t job_owner_rank(pid_t owner);
/* Whether it measures what we measure: it is an ancestor of ours (wattle inside of a program that wattle runs), or was started by
 * our target (two trackers of one program). Such recorders are no two ranks, and each reads for itself. */
bool job_owner_is_kin(pid_t owner, pid_t target);
