/* The keeper starts a recorder and kills it with all its descendants. The job's user controls the recorder and can make it start other
 * processes, and Slurm does not end them with the step, since they are not in the step's container.
 *
 * The keeper runs as root. With cgroup v2 it kills the recorder's own control group, a child of slurmstepd's. Without it, it kills its
 * own children until none is left: as a subreaper (PR_SET_CHILD_SUBREAPER) it becomes the parent of every orphaned descendant.
 *
 * The keeper is two processes, a parent and its child, and the child starts the recorder. Both are subreapers: whichever is killed, the
 * other one kills all descendants. Only the death of both at once, without cgroup v2, leaves descendants of the recorder. The recorder
 * itself dies with its keeper (PR_SET_PDEATHSIG). The kernel's out-of-memory killer takes other processes first (oom_score_adj -999).
 *
 * The keeper does this, and then exits, when the recorder has exited or when the other end of its line is closed: the step has ended, or
 * slurmstepd was killed. */
#pragma once

#include "spank/recorder_start.h"

// Call it in a fork of slurmstepd. line_fd: a stream socket; closing one end means the end of that side.
_Noreturn void keeper_run(const struct recorder_start *start, int line_fd);
