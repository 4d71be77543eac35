/* Charts of a job: the power of its nodes on one axis, and what each of its ranks did, block by block. The axis is the job's own time,
 * by the hosts' wall clocks, pauses included, in equal buckets. Pure. */
#pragma once

#include "analysis/chart/chart.h"
#include "analysis/job/job.h"

enum { JOB_PARTS_MAX = 8 }; // nodes that have a colour; of more, those with the most energy do, and the rest is one

struct job_charts {
	/* "power", stacked, a part a node; a lane a rank with its innermost blocks, titled by its node. Findings are the job's total. */
	struct charts charts;
	size_t n_columns; // of the next: equal stretches of the whole time
	double *node_w;   // of node i in column c: node_w[i * n_columns + c], mean power; NaN unknown
	double highest_w; // of all of those
	size_t lanes_left_out;
};

int charts_of_job(const struct job_findings *job, struct job_charts *ret_charts); // -ENOMEM
void charts_of_job_finish(struct job_charts *charts);

/* ---- of this folder ---- */
// The lanes of all ranks; `charts` has its axis.
int chart_job_lanes(const struct job_findings *job, struct job_charts *charts);
