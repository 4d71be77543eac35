/* What is told of a step once it is over: the last of its nodes to end sums up what lies in the folder, as `wattle report` does, for
 * the job's comment and for whoever waits for the step. In a program of its own, as the job's user, and not for longer than
 * settings.wait_ns: reading the runs of many ranks takes its time, and folders of users have their ways. */
#pragma once

#include "base/error.h"
#include "spank/settings.h"
#include "spank/task_line.h"

#include <stdint.h>

struct step_end {
	const struct settings *settings;
	const struct task_owner *owner;
	const char *job_id;     // as wattle has it: "4242_7"
	uint32_t slurm_job;     // as scontrol does
	const char *step;       // "0", "batch"
	uint32_t restart;       // of the job
	uint32_t node, n_nodes; // which one of how many of the step's
};

// told: one line for whoever waits, or what went wrong.
void step_end(const struct step_end *end, void (*told)(const char *text));
/* Where the step was started from, when it is over: whether some of its nodes have not met the others in the folder. settings, job_id,
 * step and restart are looked at. */
bool step_end_is_apart(const struct step_end *end);

/* comment.c: what is to become of a job's comment: `old` without what an earlier step of the job said, and `line` behind it.
 * -EMSGSIZE: it is too long for that. */
int comment_make(const char *old, const char *line, char *ret_comment, size_t size);
// The comment as `scontrol show job` shows it; "" none. -EILSEQ: it has further lines; -EMSGSIZE.
int comment_find(const char *shown, char *ret_comment, size_t size);
// Whether the job that `scontrol show job` shows is over, cancelled or out of time: Slurm takes no comment of it any more.
bool comment_is_too_late(const char *shown);
