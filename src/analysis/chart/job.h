/* Charts of a job: the power of its nodes on one axis, and the code blocks of its ranks over time. The axis is the
 * job's own time, by the hosts' wall clocks, including pauses, in equal buckets. Pure. */
#pragma once

#include "analysis/chart/chart.h"
#include "analysis/job/job.h"

enum { JOB_PARTS_MAX = 8 }; // number of parts with a colour; if there are more nodes, those with the most energy are
			    // parts and the rest is one part

struct job_charts {
	/* "power", stacked, with one part per node; one lane per rank with its innermost blocks, titled by its node.
	 * Findings are the job's total. */
	struct charts charts;
	size_t n_columns; // number of equal intervals of the whole time
	double *node_w;   // mean power of node i in column c: node_w[i * n_columns + c]; NaN unknown
	double highest_w; // maximum of node_w
	size_t lanes_left_out;
};

int charts_of_job(const struct job_findings *job, struct job_charts *ret_charts); // -ENOMEM
void charts_of_job_finish(struct job_charts *charts);

/* ---- internal ---- */
// Makes the lanes of all ranks; `charts` must have its axis.
int chart_job_lanes(const struct job_findings *job, struct job_charts *charts);
